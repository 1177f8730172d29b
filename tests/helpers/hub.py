"""A model hub on this machine: it stores what is uploaded, and can be told to refuse or to break off.

It answers what `huggingface_hub.HfApi` asks to make a repository, to upload files, whole or in parts, and to commit.
"""

import base64
import hashlib
import json
import re
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

TOKEN, READER = "hf_writes", "hf_reads"
LARGE = 2**16
"""Bytes from which on a file is uploaded apart from the commit."""
PARTED = 2**21
"""Bytes from which on it is uploaded in parts of this size."""


class Hub:
    """What the hub holds.

    Attributes:
        repositories: name → `private`, and branch → (commit, path → content).
        stored: SHA-256 → content of large files.
        uploads: how often each content came, by its SHA-256.
        refuse: pattern of a method and path, such as `POST .*/commit/` → the status to answer with, or 0 to hang up.
        ignored: paths that are passed over, as by a `.gitignore`.
        asked: method and path of every request.
    """

    def __init__(self):
        self.repositories, self.stored, self.parts = {}, {}, {}
        self.uploads, self.refuse, self.ignored, self.asked = {}, {}, set(), []
        self.endpoint = ""

    def make(self, name, private=False, files=None):
        """Make a repository with a first commit."""
        self.repositories[name] = {"private": private, "branches": {"main": (_commit(files or {}), dict(files or {}))}}

    def files(self, name, branch="main"):
        """Return path → content of a branch."""
        return self.repositories[name]["branches"][branch][1]

    def store(self, content):
        """Keep a large file."""
        digest = hashlib.sha256(content).hexdigest()
        self.stored[digest] = content
        self.uploads[digest] = self.uploads.get(digest, 0) + 1
        return digest


def _commit(files):
    return hashlib.sha1(repr(sorted(files.items())).encode()).hexdigest()


class _Refused(Exception):
    def __init__(self, code, message="", error="", **content):
        self.code, self.message, self.error, self.content = code, message, error, content


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *args):
        """Say nothing."""

    def _answer(self):
        hub, line = self.server.hub, f"{self.command} {self.path.partition('?')[0]}"
        length = int(self.headers.get("Content-Length") or 0)
        if self.headers.get("Transfer-Encoding") == "chunked":
            body = b"".join(iter(self._chunk, b""))
        else:
            body = self.rfile.read(length)
        hub.asked.append(line)
        for pattern, code in hub.refuse.items():
            if re.fullmatch(pattern, line):
                if not code:
                    self.close_connection = True
                    self.connection.close()
                    return
                self._send(code, {"error": f"refused with {TOKEN}"}, {})
                return
        try:
            for pattern, method in ROUTES.items():
                if found := re.fullmatch(pattern, line):
                    code, content, headers = method(self, hub, body, *found.groups())
                    self._send(code, content, headers)
                    return
            raise _Refused(404, f"nobody answers {line}")
        except _Refused as error:
            headers = {"X-Error-Message": error.message, **({"X-Error-Code": error.error} if error.error else {})}
            self._send(error.code, {"error": error.message, **error.content}, headers)

    do_GET = do_POST = do_PUT = do_HEAD = _answer

    def _chunk(self):
        size = int(self.rfile.readline().strip(), 16)
        content = self.rfile.read(size)
        self.rfile.readline()
        return content

    def _send(self, code, content, headers):
        body = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(code)
        for name, value in {"Content-Length": len(body), **headers}.items():
            self.send_header(name, str(value))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _writer(self):
        given = self.headers.get("Authorization", "").removeprefix("Bearer ")
        if given not in (TOKEN, READER):
            raise _Refused(401, "Invalid credentials in Authorization header")
        if given == READER:
            raise _Refused(403, "this token may only read")

    def _repository(self, hub, name):
        if self.headers.get("Authorization", "").removeprefix("Bearer ") not in (TOKEN, READER):
            raise _Refused(401, "Invalid credentials in Authorization header")
        if name not in hub.repositories:
            raise _Refused(404, "Repository not found", "RepoNotFound")
        return hub.repositories[name]

    def validate(self, hub, body):
        card = json.loads(body)["content"]
        if "license: none-of-them" in card:
            return 400, {"errors": [{"message": '"license" must be one of a list'}], "warnings": []}, {}
        return 200, {"errors": [], "warnings": []}, {}

    def look(self, hub, body, name, revision="main"):
        repository = self._repository(hub, name)
        known = {sha: files for sha, files in repository["branches"].values()}
        known |= {branch: files for branch, (_, files) in repository["branches"].items()}
        if revision not in known:
            raise _Refused(404, f"Invalid rev id: {revision}", "RevisionNotFound")
        sha = repository["branches"].get(revision, (revision,))[0]
        siblings = [{"rfilename": path} for path in known[revision]]
        return 200, {"id": name, "private": repository["private"], "sha": sha, "siblings": siblings}, {}

    def create(self, hub, body):
        self._writer()
        asked = json.loads(body)
        name = f"{asked['organization']}/{asked['name']}"
        if name in hub.repositories:
            raise _Refused(409, "You already created this model repo", url=f"{hub.endpoint}/{name}")
        hub.make(name, asked.get("visibility") == "private", {".gitattributes": b"*.safetensors filter=lfs\n"})
        return 200, {"url": f"{hub.endpoint}/{name}"}, {}

    def branch(self, hub, body, name, branch):
        self._writer()
        branches = self._repository(hub, name)["branches"]
        if branch in branches:
            raise _Refused(409, "Reference already exists")
        branches[branch] = (branches["main"][0], dict(branches["main"][1]))
        return 200, {}, {}

    def preupload(self, hub, body, name, branch):
        self._writer()
        there = self._repository(hub, name)["branches"][branch][1]
        return 200, {"files": [self._mode(hub, there, each) for each in json.loads(body)["files"]]}, {}

    def _mode(self, hub, there, each):
        large, content = each["size"] >= LARGE, there.get(each["path"])
        oid = None
        if content is not None and large:
            oid = hashlib.sha256(content).hexdigest()
        elif content is not None:
            oid = hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
        mode = "lfs" if large else "regular"
        return {"path": each["path"], "uploadMode": mode, "shouldIgnore": each["path"] in hub.ignored, "oid": oid}

    def batch(self, hub, body, name):
        self._writer()
        return (
            200,
            {"transfer": "basic", "objects": [self._upload(hub, each) for each in json.loads(body)["objects"]]},
            {},
        )

    def _upload(self, hub, each):
        oid, size = each["oid"], each["size"]
        if oid in hub.stored:
            return {"oid": oid, "size": size}
        upload = {"href": f"{hub.endpoint}/large/{oid}"}
        if size > PARTED:
            parts = range(1, -(-size // PARTED) + 1)
            places = {f"{i:05d}": f"{hub.endpoint}/large/{oid}/{i}" for i in parts}
            upload = {"href": f"{hub.endpoint}/large/{oid}/complete", "header": {"chunk_size": str(PARTED), **places}}
        return {"oid": oid, "size": size, "actions": {"upload": upload, "verify": {"href": f"{hub.endpoint}/verify"}}}

    def put(self, hub, body, oid):
        if hub.store(body) != oid:
            raise _Refused(400, "other bytes than were announced")
        return 200, {}, {}

    def part(self, hub, body, oid, number):
        hub.parts[oid, int(number)] = body
        return 200, {}, {"ETag": f'"{hashlib.md5(body).hexdigest()}"'}

    def join(self, hub, body, oid):
        numbers = [part["partNumber"] for part in json.loads(body)["parts"]]
        if hub.store(b"".join(hub.parts[oid, number] for number in numbers)) != oid:
            raise _Refused(400, "other bytes than were announced")
        return 200, {}, {}

    def verify(self, hub, body):
        asked = json.loads(body)
        if len(hub.stored.get(asked["oid"], b"")) != asked["size"]:
            raise _Refused(404, "not stored")
        return 200, {}, {}

    def commit(self, hub, body, name, branch):
        self._writer()
        branches = self._repository(hub, name)["branches"]
        sha, files = branches[branch][0], dict(branches[branch][1])
        for line in body.decode().splitlines():
            entry = json.loads(line)
            value = entry["value"]
            if entry["key"] == "header" and value.get("parentCommit") not in (None, sha):
                raise _Refused(412, "A commit has happened since. Please refresh and try again.")
            if entry["key"] == "file":
                files[value["path"]] = base64.b64decode(value["content"])
            elif entry["key"] == "lfsFile":
                files[value["path"]] = hub.stored[value["oid"]]
        branches[branch] = (_commit(files), files)
        return (
            200,
            {"commitUrl": f"{hub.endpoint}/{name}/commit/{branches[branch][0]}", "commitOid": branches[branch][0]},
            {},
        )

    def download(self, hub, body, name, revision, path):
        files = self._repository(hub, name)["branches"].get(revision, (None, {}))[1]
        if path not in files:
            raise _Refused(404, "Entry not found", "EntryNotFound")
        sha = hub.repositories[name]["branches"][revision][0]
        return 200, files[path], {"ETag": f'"{hashlib.sha1(files[path]).hexdigest()}"', "X-Repo-Commit": sha}


_NAME = r"([\w.-]+/[\w.-]+)"
ROUTES = {
    r"POST /api/validate-yaml": _Handler.validate,
    rf"GET /api/models/{_NAME}": _Handler.look,
    rf"GET /api/models/{_NAME}/revision/([\w.-]+)": _Handler.look,
    r"POST /api/repos/create": _Handler.create,
    rf"POST /api/models/{_NAME}/branch/([\w.-]+)": _Handler.branch,
    rf"POST /api/models/{_NAME}/preupload/([\w.-]+)": _Handler.preupload,
    rf"POST /{_NAME}\.git/info/lfs/objects/batch": _Handler.batch,
    r"PUT /large/(\w+)": _Handler.put,
    r"PUT /large/(\w+)/(\d+)": _Handler.part,
    r"POST /large/(\w+)/complete": _Handler.join,
    r"POST /verify": _Handler.verify,
    rf"POST /api/models/{_NAME}/commit/([\w.-]+)": _Handler.commit,
    rf"(?:GET|HEAD) /{_NAME}/resolve/([\w.-]+)/(.+)": _Handler.download,
}


@contextmanager
def running():
    """Run a hub on a free port of this machine."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.daemon_threads = True
    server.hub = Hub()
    server.hub.endpoint = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server.hub
    finally:
        server.shutdown()
        server.server_close()
