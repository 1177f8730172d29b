"""A launcher whose jobs are forks of this process: each encodes shards, as `metasearch resume` in a job does."""

from helpers.forks import Fork, metasearch
from metasearch.pipelines.study.cell import begin_attempt
from metasearch.pipelines.study.launchers import JobEnd
from metasearch.search import spread


class Forks:
    """Jobs by name; `first`, where a test sets it, is called in a job with its name before the job begins."""

    tick = 0.01
    first = staticmethod(lambda name: None)
    submitted: list

    def __init__(self, folder, place, threads, trust_remote_code):
        assert threads == 1
        self.folder, self.active = folder, {}

    def submit(self, names):
        """Begin jobs."""
        for name in names:
            self.submitted.append(name)
            self.active[name] = Fork(self._job(name))
        return names

    def _job(self, name):
        def call():
            begin_attempt(self.folder.log(name))
            type(self).first(name)
            metasearch("resume", self.folder.path)()

        return call

    def collect(self):
        """Return the jobs that have ended, with their last line as a job's log has it."""
        found = {}
        for name, job in self.active.items():
            if (code := job.poll()) is not None:
                with self.folder.log(name).open("a", encoding="utf-8") as log:
                    log.write(job.errors.read_text(encoding="utf-8"))
                found[name] = JobEnd(None, "its job was killed") if code < 0 else JobEnd(code)
        self.active = {name: job for name, job in self.active.items() if name not in found}
        return found

    def stop(self, again):
        """Send SIGTERM to all jobs."""
        for job in self.active.values():
            job.send_signal(15)


def forked(monkeypatch):
    """Let jobs be forks; return the class, for `first` and `submitted`."""
    monkeypatch.setattr(spread, "open_launcher", Forks)
    monkeypatch.setattr(Forks, "submitted", [], raising=False)
    monkeypatch.setattr(Forks, "first", Forks.first)
    return Forks
