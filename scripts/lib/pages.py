#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Run the commands in the blocks of pages, and compare their output with the page.

scripts/test-pages.sh calls this, in the checkout, and its --help explains the rules. One shell,
page-shell.sh, runs all commands of a page, and prints a line after each one.
"""

import collections
import difflib
import re
import subprocess
import sys

import docutils.core
import docutils.nodes

# A shell in which the files and processes of a page end with the page
SHELL = ["unshare", "--mount", "--pid", "--mount-proc", "--fork", "--kill-child", "scripts/lib/page-shell.sh"]
# ERR is for all commands of a block without prompts. The status is for one that begins with "!".
BEFORE = "trap FAILED=1 ERR; FAILED=0\n"
AFTER = "printf '\\nend of a command %d\\n' $(($? | FAILED)); FAILED=0\n"
END = re.compile(r"\nend of a command (\d+)\n")
# Blocks of the README that are not run, by their first lines
README_NOT_RUN = {
    'const char bpf_metadata_version[] SEC(".rodata") = "1.2.3";': "it is C; guide.rst has the whole program",
    "scripts/run-selftests.sh v6.16": "CI runs all tests anyway",
    "debian/rules binary TAG=v7.3.4": ".ci/run --all makes and installs the package anyway",
}
# A line of a table in the README
COLUMNS = re.compile(r"(\S.*?)?\t+\S.*")

# Parts of a line of output, and the patterns of those that vary. Metadata values, which must not vary,
# are matched first.
PARTS = re.compile(
    r'(?P<value>(?<!\(id\) )= ?(?:"(?!\d{4}-\d\d-\d\dT)[^"\n]*"|(?!\.\.\.)[^\s,"]+))'
    r"|(?P<date>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ)"
    r"|(?P<tag>(?<![0-9A-Za-z])[0-9a-f]{12,}(?![0-9A-Za-z]))"
    r"|(?P<number>\d+(?:[.,]\d+)*)"
    r"|(?P<lines>^\.\.\.\n)"
    r"|(?P<left_out>\.\.\.)"
    r"|(?P<blanks>[ \t]+)"
    r"|.|\n", re.M)
PATTERNS = {"date": r"[-0-9:T]+Z", "number": r"\d+(?:[.,]\d+)*", "lines": r"(?:.*\n)*", "left_out": ".*",
            "blanks": r"[ \t]+"}


# The commands are pairs: [line of a command...], [line of its output...].
Block = collections.namedtuple("Block", "line title not_run commands")


def parse(lines):
    """Return the commands of a block. It has none if it does not begin with a prompt."""
    commands, command, output, end = [], [], [], None
    for line in lines:
        if end or command and not output and (line.startswith(">") or command[-1].endswith("\\")):
            command.append(re.sub("^> ?", "", line))
            end = None if command[-1] == end else end
        elif re.match("[#$] ", line):
            command, output = [line[2:]], []
            commands.append((command, output))
            end = re.search(r"<<'(\w+)'|$", line)[1]
        elif commands and line:
            output.append(line)
        elif line:
            break
    return commands


def rst_blocks(text):
    """Yield the blocks of a page. A comment "not run" is for the next block of its section."""
    document = docutils.core.publish_doctree(text, settings_overrides={"report_level": 5})
    not_run = None
    for node in document.findall():
        if isinstance(node, docutils.nodes.section):
            not_run = None
        elif isinstance(node, docutils.nodes.comment) and node.astext().startswith("not run: "):
            not_run = " ".join(node.astext().split()[2:])
        elif isinstance(node, docutils.nodes.literal_block):
            lines = node.astext().split("\n")
            yield Block(node.line, lines[0], not_run, parse(lines))
            not_run = None


def readme_blocks(text):
    """Return the blocks of the README. A block is one command, or the output of the block before."""
    blocks, end = [], 0
    for match in re.finditer(r"^\t.*\n(?:\n*\t.*\n)*", text, re.M):
        lines = re.sub("^\t", "", match[0], flags=re.M).rstrip("\n").split("\n")
        between, end = text[end:match.start()], match.end()
        if blocks and between.rstrip().endswith("prints:"):
            blocks[-1].commands[0][1].extend(lines)
            continue
        is_table = all(COLUMNS.fullmatch(line) for line in lines if line)
        not_run = README_NOT_RUN.get(lines[0], "a table" if is_table else None)
        blocks.append(Block(text.count("\n", 0, match.start()) + 1, lines[0], not_run, [(lines, [])]))
    return blocks


def read_blocks(page):
    with open(page, encoding="utf-8") as source:
        text = source.read()
    return list(rst_blocks(text) if page.endswith(".rst") else readme_blocks(text))


def run_commands(commands):
    """Return output and failure of each command before the one that ended the shell, if any."""
    script = BEFORE + "".join("\n".join(command) + "\n" + AFTER for command in commands)
    shell = subprocess.run(SHELL, input=script.encode(), stdout=subprocess.PIPE, check=False)
    if shell.returncode:
        print("test-pages.sh: error: no shell for the page\n"
              "  next: it needs namespaces, overlayfs and a BPF file system of the kernel", file=sys.stderr)
        sys.exit(2)
    parts = END.split(shell.stdout.decode(errors="replace"))
    return list(zip(parts[::2], map(int, parts[1::2])))


def pattern_of(text):
    """Return a pattern for an output. A tag that repeats in the text must repeat in the output."""
    pattern = ""
    for match in PARTS.finditer(text):
        kind, part = match.lastgroup, match[0]
        if kind == "tag":
            pattern += f"(?P=tag{part})" if f"<tag{part}>" in pattern else f"(?P<tag{part}>[0-9a-f]+)"
        else:
            pattern += PATTERNS.get(kind) or re.escape(part)
    return pattern


def compare(command, wanted, printed, failed):
    """Return what is wrong with the result of a command, in lines."""
    wanted = [f"{line.strip()}\n" for line in wanted]
    shown = [f"{line.strip()}\n" for line in printed.split("\n") if line.strip() and line[0] != "#"]
    if failed:
        wrong = "failed"
    elif wanted and not re.fullmatch(pattern_of("".join(wanted)), "".join(shown)):
        wrong = "printed something else"
    else:
        return []
    difference = difflib.unified_diff(wanted, shown, "page", "printed", n=99)
    return [f"{wrong}: {command[0]}"] + [line.rstrip() for line in difference]


def test_block(block, results):
    """Return what is wrong. The results of all commands of the page that did not run yet are an iterator."""
    if not block.commands:
        return ["begins with no prompt, and is not marked as not run"]
    wrong = []
    for command, wanted in block.commands:
        result = next(results, None)
        wrong += compare(command, wanted, *result) if result else [f"did not run to its end: {command[0]}"]
    return wrong


def main(pages):
    blocks = {page: read_blocks(page) for page in pages}
    number, failed = 0, 0
    print("KTAP version 1")
    print(f"1..{sum(map(len, blocks.values()))}", flush=True)
    for page in pages:
        run = [block for block in blocks[page] if not block.not_run]
        results = iter(run_commands([command for block in run for command, _ in block.commands]))
        for block in blocks[page]:
            number += 1
            wrong = test_block(block, results) if block in run else []
            failed += bool(wrong)
            for line in wrong:
                print(f"# {line}")
            title = re.sub("^[#$] ", "", block.title.strip())
            print("not ok" if wrong else "ok", f"{number} {page}:{block.line}: {title}",
                  *(["# SKIP", block.not_run] if block.not_run else []), flush=True)
    print(f"# {failed} of {number} blocks failed")
    return bool(failed)


sys.exit(main(sys.argv[1:]))
