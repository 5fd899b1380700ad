#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Run the commands in the blocks of pages, and compare their output with the page.

scripts/test-pages.sh calls this, and its --help explains the rules. One shell,
scripts/lib/page-shell.sh, runs all commands of a page, and prints a line after each one.
"""

import difflib
import os
import re
import subprocess
import sys

import docutils.core
import docutils.nodes

SHELL = os.path.join(os.path.dirname(os.path.abspath(__file__)), "page-shell.sh")
# ERR is for all commands of a block without prompts. The status is for one that begins with "!".
BEFORE = "trap FAILED=1 ERR; FAILED=0\n"
AFTER = "printf '\\nend of a command %d\\n' $(($? | FAILED)); FAILED=0\n"
END = re.compile(r"\nend of a command (\d+)\n")
README_NOT_RUN = "scripts/lib/readme-not-run"

# A line of a table in the README
COLUMNS = re.compile(r"(\S.*?)?\t+\S.*")

# Parts of a line of output that vary. Metadata values, which must not vary, are matched first.
PARTS = re.compile(
    r'(?P<value>(?<!\(id\) )= ?(?:"(?!\d{4}-\d\d-\d\dT)[^"]*"|(?!\.\.\.)[^\s,"]+))'
    r"|(?P<date>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ)"
    r"|(?P<tag>(?<![0-9A-Za-z])[0-9a-f]{12,}(?![0-9A-Za-z]))"
    r"|(?P<number>\d+(?:[.,]\d+)*)"
    r"|(?P<left_out>\.\.\.)"
    r"|(?P<blanks>[ \t]+)")
PATTERNS = {"date": r"[-0-9:T]+Z", "number": r"\d+(?:[.,]\d+)*", "left_out": ".*", "blanks": r"[ \t]+"}


def die(text, following):
    print(f"test-pages.sh: error: {text}\n  next: {following}", file=sys.stderr)
    sys.exit(2)


class Block:
    """The commands of a block with their output, or the reason why they are not run."""

    def __init__(self, line, text, not_run):
        lines = text.split("\n")
        self.line = line
        self.title = re.sub("^[#$] ", "", lines[0].strip())
        self.not_run = not_run
        self.commands = []      # ([line of a command...], [line of its output...])
        if not not_run and re.match("[#$] ", lines[0]):
            self.parse(lines)

    def parse(self, lines):
        command, output, end = [], [], None
        for line in lines:
            if end or command and not output and (
                    line.startswith(">") or command[-1].endswith("\\")):
                command.append(re.sub("^> ?", "", line))
                end = None if command[-1] == end else end
            elif re.match("[#$] ", line):
                command, output = [line[2:]], []
                self.commands.append((command, output))
                end = re.search(r"<<'(\w+)'|$", line)[1]
            elif line:
                output.append(line)


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
            yield Block(node.line, node.astext(), not_run)
            not_run = None


def readme_blocks(text, is_readme):
    with open(README_NOT_RUN, encoding="utf-8") as listed:
        reasons = dict(line.strip().rsplit("\t", 1) for line in listed if not line.startswith("#"))
    end, block = 0, None
    for match in re.finditer(r"^\t.*\n(?:\n*\t.*\n)*", text, re.M):
        lines = re.sub("^\t", "", match[0], flags=re.M).rstrip("\n")
        first = re.sub("^[#$] ", "", lines.split("\n")[0].strip())
        not_run = reasons.pop(first, None)
        if not not_run and all(COLUMNS.fullmatch(line) for line in lines.split("\n") if line):
            not_run = "a table"
        between, end = text[end:match.start()], match.end()
        if block and between.rstrip().endswith("prints:"):
            if block.commands:
                block.commands[-1][1].extend(lines.split("\n"))
            continue
        block = Block(text.count("\n", 0, match.start()) + 1, lines, not_run)
        # A block with columns is a table that has an error. Other blocks without prompts are one command.
        if not not_run and not block.commands and not re.search(r"\S\t", lines):
            block.commands.append((lines.split("\n"), []))
        yield block
    for first in reasons if is_readme else ():
        die(f"{README_NOT_RUN}: no block of the README begins with: {first}", "correct or remove the line")


def read_blocks(page):
    with open(page, encoding="utf-8") as source:
        text = source.read()
    return list(rst_blocks(text) if page.endswith(".rst") else readme_blocks(text, page == "README"))


def run_commands(commands):
    """Return output and failure of each command before the one that ended the shell, if any."""
    script = BEFORE + "".join("\n".join(command) + "\n" + AFTER for command in commands)
    shell = subprocess.run([SHELL], input=script.encode(), stdout=subprocess.PIPE, check=False)
    if shell.returncode:
        die("no shell for the page", "it needs namespaces, overlayfs and a BPF file system of the kernel")
    parts = END.split(shell.stdout.decode(errors="replace"))
    return list(zip(parts[::2], map(int, parts[1::2])))


def pattern_of(lines):
    """Return a pattern for the output. A tag that repeats in the lines must repeat in the output."""
    tags = {}

    def replace(match):
        kind, text = match.lastgroup, match[0]
        if kind == "value":
            return re.escape(text)
        if kind != "tag":
            return PATTERNS[kind]
        if text in tags:
            return f"(?P=tag{tags[text]})"
        tags[text] = len(tags)
        return f"(?P<tag{tags[text]}>[0-9a-f]+)"

    def line_pattern(line):
        if line == "...":
            return r"(?:.*\n)*"
        result, end = "", 0
        for match in PARTS.finditer(line):
            result += re.escape(line[end:match.start()]) + replace(match)
            end = match.end()
        return result + re.escape(line[end:]) + r"\n"

    return "".join(line_pattern(line.strip()) for line in lines)


def compare(command, wanted, printed, failed):
    """Return the differences, in lines."""
    shown = [line.strip() for line in printed.split("\n") if line.strip() and line[0] != "#"]
    if failed:
        wrong = "failed"
    elif wanted and not re.fullmatch(pattern_of(wanted), "".join(f"{line}\n" for line in shown)):
        wrong = "printed something else"
    else:
        return []
    return [f"{wrong}: {command[0]}"] + list(
        difflib.unified_diff([line.strip() for line in wanted], shown, "page", "printed", "", "", 99, ""))


def test_block(block, results):
    """Return the differences. Remove the results of the block's commands from the list."""
    if not block.commands:
        return ["begins with no prompt, and is not marked as not run"]
    wrong = []
    for command, wanted in block.commands:
        wrong += compare(command, wanted, *results.pop(0)) if results else [f"did not run to its end: {command[0]}"]
    return wrong


def main(pages):
    blocks = {page: read_blocks(page) for page in pages}
    number, failed, skipped = 0, 0, 0
    print("KTAP version 1")
    print(f"1..{sum(map(len, blocks.values()))}", flush=True)
    for page in pages:
        results = run_commands([command for block in blocks[page] for command, _ in block.commands])
        for block in blocks[page]:
            number += 1
            name = f"{number} {page}:{block.line}: {block.title}"
            if block.not_run:
                skipped += 1
                print(f"ok {name} # SKIP {block.not_run}", flush=True)
                continue
            wrong = test_block(block, results)
            failed += bool(wrong)
            for line in wrong:
                print(f"# {line}")
            print("not ok" if wrong else "ok", name, flush=True)
    print(f"# Totals: pass:{number - failed - skipped} fail:{failed} skip:{skipped}")
    return bool(failed)


sys.exit(main(sys.argv[1:]))
