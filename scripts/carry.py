#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""
usage: scripts/carry.py [options] TAG
       scripts/carry.py --continue

Carries changes in the series of TAG to the series of the other tags: the patches that
were changed, added or removed since the last commit of this checkout. Tags share a patch
PART/PATCH. If this patch does not apply to a tag, or changes it wrongly, the tag has an
adapted patch PART/TAG/PATCH. Changes are merged into adapted patches, and adapted patches are
made and removed as needed. A new patch is placed in the same part, after the patch that
it follows in the series of TAG.

git merges in the directory repo/ of --out. At a conflict, git stops, and this script
prints the patch and the files. Correct the files there, run "git add" for them and "git
rebase --continue" ("git rebase --skip" if the tag doesn't need the patch). Then call this
script with --continue. Nothing in patches/ changes before all tags are done.

  --to TAG          carry only to this tag. This option can be repeated. A tag without a
                    series gets the whole series
  --since COMMIT    carry the changes since COMMIT (default: HEAD)
  --out DIR         directory for repo/ and other files (default: out/carry)
  -h, --help        this text

Prints a line for each patch that changes. Read "git diff patches/" afterwards,
and run check-series.sh for each tag.
Environment: PBM_PATCHES, PBM_PINS and PBM_CACHE as for apply-and-build.sh
Exit status: 0 done, 1 stopped at a conflict, 2 could not run.
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
ENV = {**os.environ, "LC_ALL": "C",
       "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null",
       "GIT_AUTHOR_NAME": "carry", "GIT_AUTHOR_EMAIL": "carry@localhost",
       "GIT_COMMITTER_NAME": "carry", "GIT_COMMITTER_EMAIL": "carry@localhost"}


class Stop(Exception):
    """The script can't go on: the problem, the next step and the exit status."""
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

def known_tags():
    """Return the tags of scripts/pins in their order, but the pinned tag first."""
    tags = re.findall(r"(?m)^tag\s+(\S+)\s+(\S+)", read(PINS))
    return [tag for tag, _ in sorted(tags, key=lambda known: known[1] != "pinned")]


def key(entry):
    """Return the name of a patch. Patches with the same name are the same patch on several tags."""
    return os.path.basename(entry)


def weave(first, second):
    """Return the names of both lists in the order of the first. Other names follow their predecessor in the second."""
    names = list(first)
    for previous, name in zip([None, *second], second):
        if name not in names:
            names.insert(names.index(previous) + 1 if previous else 0, name)
    return names


class Series:
    """The series file of a tag: patches by name and in order, parts and comments."""
    def __init__(self, top, tag):
        self.top = top
        self.tag = tag
        self.entries = {}
        self.not_needed = {}    # name: line
        self.parts = {}         # name: line
        self.place = {}         # name of a patch, needed or not: its part; in order
        self.comments = {}      # name or part before the comments: lines
        path = f"{top}/{tag}/series"
        last = None
        for line in read(path).splitlines() if os.path.exists(path) else []:
            last = self.read_line(line, last)

    def read_line(self, line, last):
        """Read a line. Return the name or the part to which comments in the next lines belong."""
        words = line.split()
        if line.startswith("# part "):
            part = words[2].rstrip(":")
            self.parts[part] = line
            return part
        if line.startswith("# not needed: "):
            return self.put(self.not_needed, words[3].rstrip(":"), line)
        if words and not line.startswith("#"):
            return self.put(self.entries, words[0], words[0])
        self.comments.setdefault(last, []).append(line)
        return last

    def put(self, where, entry, what):
        name, part = key(entry), entry.split("/")[0]
        where[name] = what
        self.place[name] = part
        self.parts.setdefault(part, f"# part {part}: ")
        return name

    def text(self, name):
        return read(f"{self.top}/{self.entries[name]}")

    def files(self):
        found = set()
        for name in self.entries:
            found.update(re.findall(r"(?m)^(?:---|\+\+\+) [ab]/(\S+)", self.text(name)))
        return found


def without_lines(text):
    """Return a patch without line numbers and without the function names after them."""
    return re.sub(r"(?m)^@@ -\S+ \S+ @@.*", "@@", text)


def header(text):
    """Return the text before the diffstat."""
    return text[:re.search(r"(?m)^---$", text).start()]


# --- the repository -----------------------------------------------------------

class Carry:
    """A run of the script, new or continued. Its state is in DIR/state."""
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
        """Keep the old and the new series, and make a repository of all files that they touch."""
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
        """Stop if patches of the target tags were changed, because these changes would be lost."""
        for target in targets:
            names = {f"{target}/series"}
            for when in ("old", "new"):
                names.update(self.series(target, when).entries.values())
            for name in sorted(names - carried):
                old, new = f"{self.dir}/old/{name}", f"{self.dir}/new/{name}"
                there = os.path.exists(old)
                if there != os.path.exists(new) or there and read(old) != read(new):
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
        """Make a commit for each patch. Its subject is the path of the patch in the series file."""
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
        """Return the commits of a series, by name of the patch."""
        lines = self.git("log", "--reverse", "--format=%H %s", f"base/{tag}..{branch}").splitlines()
        return {key(line.split()[1]): line.split()[0] for line in lines}

    # --- merging --------------------------------------------------------------

    def order(self, tag):
        """
        Return the patches for a tag, needed or not. They are in the order of this tag, or, if the order of
        the source tag has changed, in that order.
        """
        source = self.state["from"]
        before, after, mine = self.series(source, "old"), self.series(source, "new"), self.series(tag, "old")
        place = {**before.place, **mine.place, **after.place}
        gone = before.place.keys() - after.place.keys()
        names = [name for name in mine.place if name not in gone]
        new = [name for name in after.place if name in names or not mine.place
               or name in after.entries and name not in before.entries]
        order = []
        for part in weave([*mine.parts], [*after.parts]):
            theirs, ours = ([name for name in some if place[name] == part] for some in (new, names))
            moved = [name for name in before.place if name in theirs] != [name for name in theirs if name in before.place]
            order += weave(theirs, ours) if moved else weave(ours, theirs)
        return order

    def todo(self, tag):
        """Return the list for git rebase: the tag's commits, and the changes of the source tag's patches."""
        source = self.state["from"]
        before, after = self.series(source, "old"), self.series(source, "new")
        mine = self.commits(f"old/{tag}", tag)
        old, new = self.commits(f"old/{source}", source), self.commits(f"new/{source}", source)
        not_needed = self.series(tag, "old").not_needed
        lines = []
        changed = [name for name in new
                   if name in old and without_lines(before.text(name)) != without_lines(after.text(name))]
        for name in self.order(tag):
            commit = mine.get(name) or name not in not_needed and new.get(name)
            if commit:
                lines.append(f"pick {commit} {self.git('log', '-1', '--format=%s', commit)}")
            if name in mine and name in changed:
                change = self.git("commit-tree", f"{new[name]}^{{tree}}", "-p", old[name], "-m", "change")
                lines.append(f"fixup {change}")
        for name in changed:
            if mine and name not in mine:
                print(f"{tag}: {after.entries[name]} was changed, and is not needed here")
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
                   f"and repeat this until the rebase ends; then scripts/carry.py --out {self.dir} --continue", 1)

    # --- back to patches ------------------------------------------------------

    def export(self):
        """Write the series of all tags to DIR/result, and from there to patches/."""
        shutil.rmtree(f"{self.dir}/result", ignore_errors=True)
        source = self.state["from"]
        exports = {}
        for tag in known_tags():
            branch = f"new/{source}" if tag == source else f"work/{tag}" if tag in self.state["targets"] else None
            if branch or os.path.exists(f"{self.dir}/new/{tag}/series"):
                exports[tag] = Export(self, tag, branch, list(exports.values()))
        for export in exports.values():
            export.write_series()
        self.publish()

    def publish(self):
        """Copy DIR/result to patches/. Keep the mtime of unchanged files, and remove patches that no series names."""
        wanted = set(files_below(f"{self.dir}/result"))
        for name in files_below(PATCHES):
            if name.endswith(".patch") and name not in wanted:
                os.unlink(f"{PATCHES}/{name}")
                if not os.listdir(os.path.dirname(f"{PATCHES}/{name}")):
                    os.rmdir(os.path.dirname(f"{PATCHES}/{name}"))
        for name in wanted:
            path, text = f"{PATCHES}/{name}", read(f"{self.dir}/result/{name}")
            if not os.path.exists(path) or read(path) != text:
                write(path, text)


def files_below(top):
    return [os.path.relpath(f"{where}/{name}", top) for where, _, names in os.walk(top) for name in names]


class Export:
    """
    The texts of a tag's patches. They are made from the commits of a branch. Without a branch,
    the text is that of an earlier tag that shares the file, or that of the file. Equal texts share one path.
    """
    def __init__(self, carry, tag, branch, before):
        self.carry = carry
        self.tag = tag
        self.before = before
        self.old = carry.series(tag, "old" if tag in carry.state["targets"] else "new")
        self.source = carry.series(carry.state["from"], "new")
        self.texts = {}
        self.place = {**self.old.place, **(self.source.place if branch else {})}
        if branch:
            print(f"patches of {tag}", flush=True)
            self.export(branch)
        else:
            for name, entry in self.old.entries.items():
                sharing = (other.texts[name] for other in self.sharing(name))
                self.texts[name] = next(sharing, None) or read(f"{carry.dir}/new/{entry}")
        self.entries = {name: self.entry_for(name) for name in self.texts}

    def sharing(self, name):
        """Return the tags before this tag that had the same file before this run."""
        return [other for other in self.before
                if name in other.texts and other.old.entries.get(name, "") == self.old.entries.get(name)]

    def entry_for(self, name):
        having = [other for other in self.before if name in other.texts]
        same = next((other for other in having if other.texts[name] == self.texts[name]), None)
        if same:
            return same.entries[name]
        return f"{self.place[name]}/{self.tag}/{name}" if having else f"{self.place[name]}/{name}"

    def makes(self, commit, name, text):
        """Return whether the patch turns the parent of the commit into the commit."""
        index = {"GIT_INDEX_FILE": f"{self.carry.dir}/index"}
        path = f"{self.carry.dir}/candidate.patch"
        write(path, text)
        self.carry.git("read-tree", f"{commit}^", **index)
        done = self.carry.git("apply", "-v", "--cached", "--whitespace=nowarn", path, check=False, **index)
        # A text that no earlier tag has must have the line numbers of this tag.
        exact = "(offset " not in done.stdout or any(other.texts.get(name) == text for other in self.before)
        return done.returncode == 0 and exact and \
            self.carry.git("write-tree", **index) == self.carry.git("rev-parse", f"{commit}^{{tree}}")

    def make_text(self, head, commit):
        """Return a new patch in the form of quilt refresh, with this header."""
        path = f"{self.carry.dir}/body.patch"
        changes = self.carry.git("diff", "-p", "--no-renames", "--no-indent-heuristic", f"{commit}^", commit, check=False).stdout
        body = re.sub(r"(?m)^index .*\n", "", changes)
        # Like quilt with scripts/quiltrc, keep only the mode of executable files.
        body = re.sub(r"(?m)^diff --git .*\n((new|deleted) file mode 100644\n)?(?=--- )", "", body)
        # diff -p shows only 40 characters of the name of a function, but git shows more.
        body = re.sub(r"(?m)^(@@ -\S+ \S+ @@ )(.*)", lambda match: (match[1] + match[2][:40]).rstrip(), body)
        write(path, body)
        return f"{head}---\n{run('diffstat', '-p1', path, check=False).stdout}\n{body}"

    def merged_header(self, name):
        """Return the header of a tag's own patch, merged with the changes of the source's header."""
        before, after = self.carry.series(self.source.tag, "old"), self.source
        if name not in self.old.entries:
            return header(after.text(name))
        mine = header(self.old.text(name))
        if name in before.entries and name in after.entries and before.text(name) != after.text(name):
            names = []
            for which, text in (("mine", mine), ("before", header(before.text(name))),
                                ("after", header(after.text(name)))):
                write(f"{self.carry.dir}/header.{which}", text)
                names.append(f"{self.carry.dir}/header.{which}")
            done = run("git", "merge-file", "-p", *names, check=False)
            if done.returncode == 0:
                mine = done.stdout
            else:
                print(f"{self.tag}: {name}: the changelog is not merged, see that of {after.entries[name]}")
        return mine

    def export(self, branch):
        for name, commit in self.carry.commits(branch, self.tag).items():
            if self.carry.git("diff", "--name-only", f"{commit}^", commit):
                self.texts[name] = self.text_for(name, commit)
            else:
                print(f"{self.tag}: {self.carry.git('log', '-1', '--format=%s', commit)} changes nothing here")

    def text_for(self, name, commit):
        head = self.merged_header(name)
        candidates = (text for text in dict.fromkeys(self.candidates(name, head)) if self.makes(commit, name, text))
        return next(candidates, None) or self.make_text(head, commit)

    def candidates(self, name, head):
        """Yield texts of the pinned tag and of sharing tags, then other texts with this header."""
        others = [other.texts[name] for other in self.before if name in other.texts]
        yield from (other.texts[name] for other in [*self.before[:1], *self.sharing(name)] if name in other.texts)
        path = f"{self.carry.dir}/new/{self.old.entries.get(name) or self.source.entries[name]}"
        if os.path.exists(path):
            others.append(read(path))
        if name in self.old.entries:
            others.append(self.old.text(name))
        yield from (text for text in others if header(text) == head)

    def say(self):
        """Print a line for each patch that changes."""
        new = f"{self.carry.dir}/new"
        for name, entry in self.entries.items():
            was = self.old.entries.get(name)
            if not os.path.exists(f"{new}/{entry}") or read(f"{new}/{entry}") != self.texts[name]:
                if all(other.entries.get(name) != entry for other in self.before):
                    print(f"{self.tag}: {entry} (written)")
            elif was != entry:
                print(f"{self.tag}: {entry} " + (f"(was {was})" if was else "(new)"))
        for name, entry in self.old.entries.items():
            if name not in self.entries:
                print(f"{self.tag}: {entry} (removed)")

    def write_series(self):
        """Write the lines of the old series in the new order. A new tag gets the lines of the source's series."""
        old = self.old if self.old.place else self.source
        order = [*old.place] if self.tag not in self.carry.state["targets"] else self.carry.order(self.tag)
        lines, part = [*old.comments.get(None, [])], None
        for name in order:
            line = self.entries.get(name) or old.not_needed.get(name)
            if not line:
                print(f"{self.tag}: left out {self.place[name]}/{name}: it needs a line '# not needed'")
                continue
            if self.place[name] != part:
                part = self.place[name]
                lines += [self.source.parts.get(part) or old.parts[part], *old.comments.get(part, [])]
            lines += [line, *old.comments.get(name, [])]
        write(f"{self.carry.dir}/result/{self.tag}/series", "\n".join(lines) + "\n")
        for name, entry in self.entries.items():
            write(f"{self.carry.dir}/result/{entry}", self.texts[name])
        self.say()


def begin(carry, options, tag):
    known = known_tags()
    having_series = [name for name in known if os.path.exists(f"{PATCHES}/{name}/series")]
    targets = [value for name, value in options if name == "--to"]
    for any_tag in [tag, *targets]:
        if any_tag not in known:
            raise Stop(f"unknown tag '{any_tag}'", f"use one of: {' '.join(known)}")
    if tag not in having_series:
        raise Stop(f"{tag} has no series", "name a tag that has one")
    since = dict(options).get("--since", "HEAD")
    if not targets and not subprocess.run(("git", "diff", "--quiet", since, "--", "."), cwd=PATCHES, check=False).returncode:
        print(f"no patch has changed since {since}: use --since HEAD~1 if the change is committed", flush=True)
    targets = targets or having_series
    carry.start(tag, since, [name for name in targets if name != tag])


def go_on(carry):
    if not os.path.exists(f"{carry.dir}/state"):
        raise Stop("there is nothing to continue", "run scripts/carry.py TAG")
    carry.state = json.loads(read(f"{carry.dir}/state"))
    if "current" in carry.state:
        carry.check_rebased(carry.state["current"])


def main():
    try:
        options, arguments = getopt.gnu_getopt(sys.argv[1:], "h", ["to=", "since=", "continue", "out=", "help"])
    except getopt.GetoptError as error:
        raise Stop(str(error), "carry.py --help lists the options") from error
    given = dict(options)
    if "-h" in given or "--help" in given:
        print(__doc__.strip())
        return
    carry = Carry(os.path.abspath(given.get("--out", f"{REPO}/out/carry")))
    if "--continue" in given:
        go_on(carry)
    elif len(arguments) == 1:
        begin(carry, options, arguments[0])
    else:
        raise Stop(f"one TAG is needed, {len(arguments)} given", "carry.py --help lists the options")
    for tag in carry.state["targets"]:
        if tag not in carry.state["rebased"]:
            carry.rebase(tag)
    carry.export()
    os.unlink(f"{carry.dir}/state")


if __name__ == "__main__":
    try:
        main()
    except Stop as stop:
        print(f"carry.py: {'stopped' if stop.status == 1 else 'error'}: {stop}\n  next: {stop.step}", file=sys.stderr)
        sys.exit(stop.status)
