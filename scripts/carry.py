#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""
usage: scripts/carry.py [options] TAG
       scripts/carry.py --continue

Carries what was changed in the series of TAG, since the last commit of this
checkout, to the series of the other tags: a changed patch, a new one, one that
is gone. Where such a tag has a patch of its own in place of the changed one, the
change is merged into that; where the tag's own is no longer needed, because the
shared one makes the same files, it is removed, and the other way round.

git does the merging, in repo/ of --out. Where it finds a conflict it stops, and
this says in which patch and which files. Correct them there, "git add" them, "git
rebase --continue" ("git rebase --skip" for a patch that the tag doesn't need), and
call this with --continue. Nothing in patches/ changes before all tags are done.

  --to TAG          only to this tag, can be repeated; a tag without a series gets all
                    of TAG's
  --since COMMIT    what was changed since COMMIT (default: HEAD)
  --abort           forget what was begun
  --out DIR         where it works (default: out/carry)
  -h, --help        this text

Prints what becomes of each patch that changes. Read "git diff patches/" afterwards,
and run check-series.sh of each tag.
Environment: PBM_PATCHES, PBM_PINS and PBM_CACHE as for apply-and-build.sh
Exit status: 0 done, 1 it stopped at a conflict, 2 could not run.
"""
import getopt
import json
import os
import re
import shutil
import subprocess
import sys

SCRIPTS = os.path.dirname(os.path.realpath(__file__))
REPO = os.path.dirname(SCRIPTS)
PATCHES = os.path.abspath(os.environ.get("PBM_PATCHES", f"{REPO}/patches"))
PINS = os.environ.get("PBM_PINS", f"{SCRIPTS}/pins")
ENV = {**os.environ, "QUILTRC": f"{SCRIPTS}/quiltrc", "LC_ALL": "C",
       "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null",
       "GIT_AUTHOR_NAME": "carry", "GIT_AUTHOR_EMAIL": "carry@localhost",
       "GIT_COMMITTER_NAME": "carry", "GIT_COMMITTER_EMAIL": "carry@localhost"}
for variable in [name for name in ENV if name.startswith("QUILT_")]:
    del ENV[variable]


class Stop(Exception):
    """It can't go on: what is wrong, the next step, and the exit status."""
    def __init__(self, text, step, status=2):
        super().__init__(text)
        self.step = step
        self.status = status


def run(*command, cwd=None, check=True, **env):
    done = subprocess.run(command, cwd=cwd, env={**ENV, **env}, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          encoding="utf-8", errors="surrogateescape")
    if check and done.returncode:
        raise Stop(f"{' '.join(command[:4])}: {done.stdout.strip()[-600:]}", "see above")
    return done if not check else done.stdout.strip()


def read(path):
    with open(path, encoding="utf-8", errors="surrogateescape") as file:
        return file.read()


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(f"{path}.part", "w", encoding="utf-8", errors="surrogateescape") as file:
        file.write(text)
    os.rename(f"{path}.part", path)


# --- series -------------------------------------------------------------------

def pinned_tags():
    """The tags of the table in its order, and the pinned one."""
    tags = re.findall(r"(?m)^tag\s+(\S+)\s+(\S+)", read(PINS))
    return [tag for tag, _ in tags], next(tag for tag, state in tags if state == "pinned")


MAILED_ONLY = "# mailed only: "


def entry_of(line):
    """The patch that a line of a series names, or nothing"""
    return line.removeprefix(MAILED_ONLY).split("#")[0].strip()


def key(entry):
    """Patches with the same number are the same patch on several tags."""
    return os.path.basename(entry).split("-")[0]


class Series:
    """A series as it stands in a directory: patches by number, in order; those mailed only are last."""
    def __init__(self, top, tag):
        self.top = top
        self.tag = tag
        path = f"{top}/{tag}/series"
        self.lines = read(path).splitlines() if os.path.exists(path) else []
        entries = [entry_of(line) for line in self.lines]
        self.entries = {key(entry): entry for entry in entries if entry}
        self.mailed_only = {key(entry_of(line)) for line in self.lines if line.startswith(MAILED_ONLY)}

    def text(self, number):
        return read(f"{self.top}/{self.entries[number]}")

    def files(self):
        found = set()
        for number in self.entries:
            found.update(re.findall(r"(?m)^(?:---|\+\+\+) [ab]/(\S+)", self.text(number)))
        return found


def header(text):
    """What comes before the diffstat."""
    return text[:re.search(r"(?m)^---$", text).start()]


# --- the repository -----------------------------------------------------------

class Carry:
    """One run, or what was left of it. Its state is in DIR/state."""
    def __init__(self, directory):
        self.dir = directory
        self.repo = f"{directory}/repo"
        self.state = {}

    def git(self, *arguments, **options):
        return run("git", "-c", "merge.conflictStyle=diff3", *arguments, cwd=self.repo, **options)

    def save(self):
        write(f"{self.dir}/state", json.dumps(self.state))

    def series(self, tag, when):
        return Series(f"{self.dir}/{when}", tag)

    def source(self, tag):
        out = f"{self.dir}/base-{tag}"
        print(f"source of {tag}", flush=True)
        run(f"{SCRIPTS}/apply-and-build.sh", "--quiet", "--no-patches", "--stop-after", "source", "--out", out, tag)
        return f"{out}/.base/tree"

    def start(self, tag, since, targets):
        """Keep the old and the new series, and make a repository of all that they touch."""
        shutil.rmtree(self.repo, ignore_errors=True)
        for when in ("old", "new", "result"):
            shutil.rmtree(f"{self.dir}/{when}", ignore_errors=True)
        os.makedirs(self.repo)
        shutil.copytree(PATCHES, f"{self.dir}/new")
        os.makedirs(f"{self.dir}/old")
        where = os.path.dirname(PATCHES)
        archive = subprocess.run(("git", "-C", where, "archive", since, os.path.basename(PATCHES)),
                                 stdout=subprocess.PIPE, check=False)
        if archive.returncode:
            raise Stop(f"git has no {PATCHES} at {since}", "name a commit of this checkout with --since")
        subprocess.run(("tar", "-x", "--strip-components=1", "-C", f"{self.dir}/old"), input=archive.stdout, check=True)
        self.state = {"from": tag, "targets": targets, "rebased": []}
        self.git("init", "-q", "-b", "start")
        self.git("commit", "-q", "--allow-empty", "-m", "start")
        files = set()
        source = self.series(tag, "new")
        for series in (source, self.series(tag, "old"), *(self.series(target, "old") for target in targets)):
            files |= series.files()
        self.refuse_changes(targets, {*source.entries.values(), *self.series(tag, "old").entries.values()})
        for any_tag in dict.fromkeys([tag, *targets]):
            self.add_base(any_tag, files)
        for any_tag in targets:
            self.add_series(f"old/{any_tag}", self.series(any_tag, "old"))
        self.add_series(f"old/{tag}", self.series(tag, "old"))
        self.add_series(f"new/{tag}", self.series(tag, "new"))
        self.save()

    def refuse_changes(self, targets, carried):
        """What was changed of the targets themselves would be lost."""
        for target in targets:
            names = set()
            for when in ("old", "new"):
                if os.path.isdir(f"{self.dir}/{when}/{target}"):
                    names.update(f"{target}/{name}" for name in os.listdir(f"{self.dir}/{when}/{target}"))
            for name in sorted(names - carried):
                old, new = f"{self.dir}/old/{name}", f"{self.dir}/new/{name}"
                if not os.path.exists(old) or not os.path.exists(new) or read(old) != read(new):
                    raise Stop(f"{PATCHES}/{name} was changed, too", "commit that first, or undo it")

    def add_base(self, tag, files):
        source = self.source(tag)
        self.git("checkout", "-q", "--orphan", f"base/{tag}", "start")
        for file in files:
            if os.path.lexists(f"{source}/{file}"):
                os.makedirs(os.path.dirname(f"{self.repo}/{file}"), exist_ok=True)
                shutil.copy2(f"{source}/{file}", f"{self.repo}/{file}", follow_symlinks=False)
        self.git("add", "-A", "-f")
        self.git("commit", "-q", "-m", f"base {tag}")

    def add_series(self, branch, series):
        """A commit for each patch, whose subject is its entry."""
        self.git("checkout", "-q", "-b", branch, f"base/{series.tag}")
        for entry in series.entries.values():
            done = run("patch", "-p1", "--force", "--fuzz=0", "--no-backup-if-mismatch", "-i",
                       f"{series.top}/{entry}", cwd=self.repo, check=False)
            if done.returncode:
                raise Stop(f"{entry} does not apply to {series.tag}: {done.stdout.strip()[-300:]}",
                           f"correct patches/{series.tag} first: check-series.sh --fast {series.tag} has to pass")
            self.git("add", "-A", "-f")
            self.git("commit", "-q", "--allow-empty", "-m", entry)

    def commits(self, branch, tag):
        """The commits of a series, by number."""
        lines = self.git("log", "--reverse", "--format=%H %s", f"base/{tag}..{branch}").splitlines()
        return {key(line.split()[1]): line.split()[0] for line in lines}

    # --- merging --------------------------------------------------------------

    def todo(self, tag):
        """What git rebase has to do for a tag: its own commits, and changes of the source's."""
        source = self.state["from"]
        before, after = self.series(source, "old"), self.series(source, "new")
        mine = self.commits(f"old/{tag}", tag)
        mailed_only = self.series(tag, "old").mailed_only
        old, new = self.commits(f"old/{source}", source), self.commits(f"new/{source}", source)
        fresh = not mine
        lines = []

        def pick(commit):
            return f"pick {commit} {self.git('log', '-1', '--format=%s', commit)}"

        def pick_added(next_number):
            # Those that only this tag has stay behind the patch that they follow, but numbers ascend.
            for number in [number for number in waiting
                           if next_number is None or number < next_number and number not in mailed_only]:
                waiting.remove(number)
                lines.append(pick(mine[number]))

        following, waiting, last = {}, [], None
        for number in mine:
            if number in before.entries or number in after.entries:
                last = number
            else:
                following.setdefault(last, []).append(number)
        waiting += following.get(None, [])
        for number, commit in new.items():
            pick_added(number)
            if number in mine:
                lines.append(pick(mine[number]))
                if number in old and before.text(number) != after.text(number):
                    change = self.git("commit-tree", f"{commit}^{{tree}}", "-p", old[number], "-m", "change")
                    lines.append(f"fixup {change}")
            elif fresh or number not in before.entries:
                lines.append(pick(commit))
            elif before.text(number) != after.text(number):
                print(f"{tag}: {after.entries[number]} was changed, and is not needed here")
            waiting += following.get(number, [])
        for number in before.entries:
            if number not in new:
                waiting += following.get(number, [])
        pick_added(None)
        return "\n".join(lines) + "\n"

    def rebase(self, tag):
        self.git("checkout", "-q", "-B", f"work/{tag}", f"old/{tag}")
        write(f"{self.dir}/todo", self.todo(tag))
        self.state["current"] = tag
        self.save()
        done = self.git("-c", "advice.skippedCherryPicks=false", "rebase", "-q", "-i", "--empty=keep",
                        "--onto", f"base/{tag}", f"base/{tag}", check=False,
                        GIT_SEQUENCE_EDITOR=f"cp {self.dir}/todo", GIT_EDITOR="true")
        self.check_rebased(tag, done.stdout)

    def check_rebased(self, tag, said=""):
        if not os.path.isdir(f"{self.repo}/.git/rebase-merge"):
            if said and self.git("symbolic-ref", "--short", "HEAD") != f"work/{tag}":
                raise Stop(f"git rebase: {said[-300:]}", "see above")
            self.state["rebased"].append(tag)
            self.state.pop("current")
            self.save()
            return
        done = read(f"{self.repo}/.git/rebase-merge/done").splitlines()
        patch = next(self.git("log", "-1", "--format=%s", line.split()[1]) for line in reversed(done)
                     if line.startswith("pick"))
        files = self.git("diff", "--name-only", "--diff-filter=U").splitlines()
        raise Stop(f"{tag}: {patch} does not fit:\n  " + ("\n  ".join(files) or said[-300:]),
                   f"cd {self.repo}; correct the files, git add them, GIT_EDITOR=true git rebase --continue, "
                   "and so on to its end; then scripts/carry.py --continue", 1)

    # --- back to patches ------------------------------------------------------

    def export(self, tags, pinned):
        """Write the series of all tags; the pinned one first, as the others share its patches."""
        shutil.rmtree(f"{self.dir}/result", ignore_errors=True)
        shutil.copytree(f"{self.dir}/new", f"{self.dir}/result")
        source = self.state["from"]
        for tag in sorted(tags, key=lambda name: name != pinned):
            branch = f"new/{source}" if tag == source else f"work/{tag}"
            print(f"patches of {tag}", flush=True)
            Export(self, tag, pinned, branch).write()
        self.remove_unused()
        for name in sorted(os.listdir(f"{self.dir}/result")):
            self.publish(f"{self.dir}/result/{name}", f"{PATCHES}/{name}")

    def publish(self, result, directory):
        """A file that stays the same keeps its time."""
        os.makedirs(directory, exist_ok=True)
        wanted = set(os.listdir(result))
        for name in set(os.listdir(directory)) - wanted:
            os.unlink(f"{directory}/{name}")
        for name in wanted:
            path = f"{directory}/{name}"
            if not os.path.exists(path) or read(path) != read(f"{result}/{name}"):
                write(path, read(f"{result}/{name}"))

    def remove_unused(self):
        """A patch that no series names any more."""
        top = f"{self.dir}/result"
        named = set()
        for tag in os.listdir(top):
            named.update(Series(top, tag).entries.values())
        for tag in os.listdir(top):
            for name in os.listdir(f"{top}/{tag}"):
                if name.endswith(".patch") and f"{tag}/{name}" not in named:
                    os.unlink(f"{top}/{tag}/{name}")


class Export:
    """The commits of a branch as the series of a tag, with quilt in a scratch tree."""
    def __init__(self, carry, tag, pinned, branch):
        self.carry = carry
        self.tag = tag
        self.branch = branch
        self.top = f"{carry.dir}/result"
        self.tree = f"{carry.dir}/tree"
        self.old = carry.series(tag, "new" if tag == carry.state["from"] else "old")
        self.shared = Series(self.top, pinned) if pinned != tag else None
        self.entries = {}

    def quilt(self, *arguments, check=True):
        return run("quilt", *arguments, cwd=self.tree, check=check,
                   QUILT_PATCHES=self.top, QUILT_SERIES=f"{self.carry.dir}/result.series")

    def is_as(self, commit, files):
        for file in files:
            path = f"{self.tree}/{file}"
            blob = subprocess.run(("git", "-C", self.carry.repo, "show", f"{commit}:{file}"),
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
            if os.path.exists(path) != (blob.returncode == 0):
                return False
            if blob.returncode == 0:
                with open(path, "rb") as there:
                    if there.read() != blob.stdout:
                        return False
        return True

    def try_patch(self, entry, commit, files):
        """Whether the patch applies and makes the files of the commit; if so it stays applied."""
        path = f"{self.carry.dir}/result.series"
        before = read(path)
        write(path, before + entry + "\n")
        done = self.quilt("push", "--fuzz=0", check=False)
        if done.returncode == 0:
            touched = set(re.findall(r"(?m)^(?:---|\+\+\+) [ab]/(\S+)", read(f"{self.top}/{entry}")))
            # One of this tag has its numbers of lines.
            exact = not entry.startswith(f"{self.tag}/") or " (offset " not in done.stdout
            if exact and self.is_as(commit, files | touched):
                return True
            self.quilt("pop", "-f")
        write(path, before)
        return False

    def make_patch(self, entry, text, commit, files):
        """A new file, with the header of TEXT."""
        path = f"{self.top}/{entry}"
        if os.path.exists(path):
            os.unlink(path)
        self.quilt("new", entry)
        self.quilt("add", *files)
        for file in files:
            self.put_file(file, commit)
        write(path, text)
        self.quilt("refresh")

    def put_file(self, file, commit):
        path = f"{self.tree}/{file}"
        blob = subprocess.run(("git", "-C", self.carry.repo, "show", f"{commit}:{file}"),
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
        if blob.returncode:
            os.unlink(path)
            return
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as there:
            there.write(blob.stdout)
        mode = self.carry.git("ls-tree", commit, "--", file).split()[0]
        os.chmod(path, 0o755 if mode == "100755" else 0o644)

    def merged_header(self, number, entry):
        """The header of a tag's own patch, with what changed in that of the source's."""
        source = self.carry.state["from"]
        before, after = self.carry.series(source, "old"), self.carry.series(source, "new")
        if number not in self.old.entries:
            return header(after.text(number))
        mine = header(self.old.text(number))
        if number in before.entries and number in after.entries and before.text(number) != after.text(number):
            names = []
            for name, text in (("mine", mine), ("before", header(before.text(number))),
                               ("after", header(after.text(number)))):
                write(f"{self.carry.dir}/header.{name}", text)
                names.append(f"{self.carry.dir}/header.{name}")
            done = run("git", "merge-file", "-p", *names, check=False)
            if done.returncode == 0:
                mine = done.stdout
            else:
                print(f"{self.tag}: {entry}: the changelog keeps its words, see that of {after.entries[number]}")
        return mine

    def write(self):
        carry = self.carry
        shutil.rmtree(self.tree, ignore_errors=True)
        os.makedirs(self.tree)
        archive = subprocess.run(("git", "-C", carry.repo, "archive", f"base/{self.tag}"),
                                 stdout=subprocess.PIPE, check=True)
        subprocess.run(("tar", "-x", "-C", self.tree), input=archive.stdout, check=True)
        write(f"{carry.dir}/result.series", "")
        self.quilt("init")
        for number, commit in carry.commits(self.branch, self.tag).items():
            self.write_patch(number, commit)
        self.write_series()

    def write_patch(self, number, commit):
        files = set(self.carry.git("diff", "--name-only", "--no-renames", f"{commit}^", commit).splitlines())
        if not files:
            print(f"{self.tag}: {self.carry.git('log', '-1', '--format=%s', commit)} changes nothing here")
            return
        known = self.shared.entries.get(number) if self.shared else None
        name = os.path.basename(self.old.entries.get(number) or self.carry.git("log", "-1", "--format=%s", commit))
        mine = self.old.entries.get(number, "")
        own = mine if mine.startswith(f"{self.tag}/") else f"{self.tag}/{name}"
        text = self.merged_header(number, own)
        for entry in dict.fromkeys((known, mine, own, *self.others(number, text))):
            if entry and os.path.exists(f"{self.top}/{entry}") and self.try_patch(entry, commit, files):
                self.say(number, entry, False)
                return
        self.make_patch(own, text, commit, files)
        self.say(number, own, True)

    def others(self, number, text):
        """The patches of earlier tags that may be this one, too: those with that header."""
        tags = pinned_tags()[0]
        for tag in tags[:tags.index(self.tag)]:
            entry = Series(self.top, tag).entries.get(number)
            if entry and os.path.exists(f"{self.top}/{entry}") and header(read(f"{self.top}/{entry}")) == text:
                yield entry

    def say(self, number, entry, is_new):
        self.entries[number] = entry
        if self.old.entries.get(number) != entry or is_new:
            print(f"{self.tag}: {entry}" + (" (written)" if is_new else " (shared now)"))

    def write_series(self):
        """
        The lines of the old series, of a new tag those of the source's, with what is new
        behind the patch that it follows.
        """
        lines, written, order = [], set(), list(self.entries)
        source = self.carry.series(self.carry.state["from"], "new")
        old = self.old if self.old.lines else source
        mailed_only = old.mailed_only | source.mailed_only

        def add(number):
            lines.append((MAILED_ONLY if number in mailed_only else "") + self.entries[number])
            written.add(number)

        def add_from(position):
            while position < len(order) and order[position] not in old.entries:
                if order[position] not in written:
                    add(order[position])
                position += 1

        add_from(0)
        for line in old.lines:
            entry = entry_of(line)
            if entry and old is source and key(entry) not in self.entries:
                print(f"{self.tag}: left out {entry}: it needs a line '# not needed'")
            if not entry:
                lines.append(line)
            elif key(entry) in self.entries:
                add(key(entry))
                add_from(order.index(key(entry)) + 1)
        write(f"{self.top}/{self.tag}/series", "\n".join(lines) + "\n")


def main():
    try:
        options, arguments = getopt.gnu_getopt(sys.argv[1:], "h", ["to=", "since=", "continue", "abort", "out=", "help"])
    except getopt.GetoptError as error:
        raise Stop(str(error), "carry.py --help lists the options") from error
    given = dict(options)
    if "-h" in given or "--help" in given:
        print(__doc__.strip())
        return
    known, pinned = pinned_tags()
    carry = Carry(os.path.abspath(given.get("--out", f"{REPO}/out/carry")))
    if "--abort" in given:
        shutil.rmtree(carry.dir, ignore_errors=True)
        return
    if "--continue" in given:
        if not os.path.exists(f"{carry.dir}/state"):
            raise Stop("there is nothing to continue", "scripts/carry.py TAG begins")
        carry.state = json.loads(read(f"{carry.dir}/state"))
        if "current" in carry.state:
            carry.check_rebased(carry.state["current"])
    else:
        if len(arguments) != 1:
            raise Stop(f"one TAG is needed, {len(arguments)} given", "carry.py --help lists the options")
        tag = arguments[0]
        targets = [value for name, value in options if name == "--to"]
        for any_tag in [tag, *targets]:
            if any_tag not in known:
                raise Stop(f"unknown tag '{any_tag}'", f"use one of: {' '.join(known)}")
        if not os.path.exists(f"{PATCHES}/{tag}/series"):
            raise Stop(f"{tag} has no series", "name a tag that has one: scripts/show-series.sh")
        targets = targets or [name for name in known if os.path.exists(f"{PATCHES}/{name}/series")]
        carry.start(tag, given.get("--since", "HEAD"), [name for name in targets if name != tag])
    for tag in carry.state["targets"]:
        if tag not in carry.state["rebased"]:
            carry.rebase(tag)
    carry.export([carry.state["from"], *carry.state["targets"]], pinned)
    os.unlink(f"{carry.dir}/state")


if __name__ == "__main__":
    try:
        main()
    except Stop as stop:
        print(f"carry.py: {'stopped' if stop.status == 1 else 'error'}: {stop}\n  next: {stop.step}", file=sys.stderr)
        sys.exit(stop.status)
