"""Hosts, token and headers: who may ask, and what a browser may do with the answers."""

import base64
import hashlib
import re
import stat

import pytest

from helpers.serving import running
from metasearch.errors import ConfigError
from metasearch.search.server.security import Hosts, is_loopback, read_token

TOKEN = "a-token-of-the-tests"


@pytest.mark.parametrize(
    ("header", "allowed"),
    [
        ("localhost", True),
        ("LocalHost:8000", True),
        ("localhost.", True),
        ("127.0.0.1:8000", True),
        ("[::1]:8000", True),
        ("10.0.0.7", True),  # nobody can let an address point elsewhere
        ("search.example.org", True),
        ("root.example.org", True),  # named with the dot of the root
        ("a.shop.example.org:443", True),
        ("shop.example.org", False),
        ("evil.example", False),
        ("localhost.evil.example", False),
        ("127.0.0.1.evil.example", False),
        ("search.example.org@evil.example", False),
        ("localhost:x", False),
        ("", False),
    ],
)
def test_a_name_must_be_known(header, allowed):
    hosts = Hosts.parse("127.0.0.1", ["search.example.org", "*.shop.example.org", "root.example.org."])
    assert hosts.allow(header) == allowed


def test_a_name_to_allow_is_a_name():
    for name in ("*", "https://example.org", "example.org:80", "a b", "*.*.org"):
        with pytest.raises(ConfigError, match="--allow-host"):
            Hosts.parse("127.0.0.1", [name])


def test_loopback_is_this_machine_alone():
    assert all(map(is_loopback, ["127.0.0.1", "127.9.9.9", "::1", "localhost"]))
    assert not any(map(is_loopback, ["0.0.0.0", "::", "192.168.0.2", "example.org"]))


def test_another_host_is_refused_whatever_it_asks(served):
    for path in ("/", "/index", "/health"):
        status, answer = served.get(path, host="evil.example")
        assert (status, answer["error"]["code"]) == (421, "unknown_host")


def test_no_answer_lets_other_sites_read_it(served):
    for method, path in (("GET", "/"), ("GET", "/index"), ("OPTIONS", "/search"), ("GET", "/nowhere")):
        _, headers, _ = served.send(method, path, headers={"origin": "https://evil.example"})
        assert not [name for name in headers if name.lower().startswith("access-control")]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert headers["server"] is None


def test_the_policy_names_the_script_and_the_style_of_the_page_and_nothing_else(served):
    _, headers, body = served.send("GET", "/")
    policy = dict(part.strip().split(" ", 1) for part in headers["content-security-policy"].split(";"))
    for kind in ("script", "style"):
        (inside,) = re.findall(f"<{kind}>(.*?)</{kind}>", body.decode(), flags=re.S)
        digest = base64.b64encode(hashlib.sha256(inside.encode()).digest()).decode()
        assert policy[f"{kind}-src"] == f"'sha256-{digest}'"
    assert policy["default-src"] == policy["base-uri"] == policy["form-action"] == "'none'"
    assert not re.findall(r"\son[a-z]+=|\sstyle=|https?://", body.decode())


@pytest.fixture(scope="module")
def locked(searcher):
    with running(searcher, TOKEN) as found:
        yield found


class TestTheToken:
    @pytest.mark.parametrize("sent", [None, "Bearer", f"Bearer {TOKEN}x", f"Basic {TOKEN}", TOKEN, "Bearer \xfc"])
    def test_is_asked_for(self, locked, sent):
        for path in ("/index", "/metrics", "/v1/models", "/nowhere") if sent is None else ("/index",):
            status, headers, body = locked.send("GET", path, headers={"authorization": sent} if sent else {})
            assert status == 401
            assert headers["www-authenticate"].startswith("Bearer")
            assert TOKEN.encode() not in body

    def test_opens(self, locked):
        assert locked.get("/index", authorization=f"Bearer {TOKEN}")[0] == 200
        assert locked.post("/search", {"query": "bees"}, authorization=f"bearer {TOKEN}")[0] == 200
        assert locked.post("/search", {"query": "bees"})[0] == 401

    def test_is_not_needed_for_the_page_which_has_nothing_of_the_index_and_for_health(self, locked):
        assert locked.send("GET", "/")[0] == 200
        assert locked.get("/health") == (200, {"status": "ready", "model": "mini"})
        assert locked.get("/health/live")[0] == 200


class TestTheTokenFile:
    def written(self, tmp_path, content, mode=0o600):
        path = tmp_path / "token"
        path.write_bytes(content)
        path.chmod(mode)
        return path

    def test_is_one_line(self, tmp_path, caplog):
        assert read_token(self.written(tmp_path, f"{TOKEN}\n".encode())) == TOKEN
        assert caplog.records == []

    def test_that_others_can_read_gets_a_warning(self, tmp_path, monkeypatch):
        said = []
        warning = "metasearch.search.server.security.log.warning"
        monkeypatch.setattr(warning, lambda text, *values: said.append(text % values))
        path = self.written(tmp_path, TOKEN.encode(), stat.S_IRUSR | stat.S_IROTH)
        assert read_token(path) == TOKEN
        assert said == [f"{path}: other users can read the token (mode 404); run: chmod 600 {path}"]

    @pytest.mark.parametrize(
        "content",
        [
            b"",
            b"first-line-of-it\nsecond-line-of-it\n",
            b"with spaces in the line",
            b"fifteen-letters",  # can be guessed
            "schlüssel-schlüssel".encode(),
            b"a-token\x00of-the-tests",
        ],
    )
    def test_without_a_token_is_refused(self, tmp_path, content):
        with pytest.raises(ConfigError, match=r"expected one line of 16 or more ASCII .* openssl rand -hex 32"):
            read_token(self.written(tmp_path, content))

    def test_that_is_missing_or_a_folder_is_refused(self, tmp_path):
        for path in (tmp_path / "none", tmp_path):
            with pytest.raises(ConfigError, match="cannot be read"):
                read_token(path)
