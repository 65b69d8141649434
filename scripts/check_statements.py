#!/usr/bin/env python3
"""Refuses two shapes that a reader has to take apart: a conditional operator inside a conditional operator, and a comma
that joins two statements. clang-tidy has no check for either (version 14).

Prints a line for each breach and exits with 1 if there is one. usage: scripts/check_statements.py
"""
import pathlib
import re
import subprocess
import sys

TOP = pathlib.Path(__file__).resolve().parent.parent
# What is not code, and character literals: replaced by blanks, so that places keep their line.
NO_CODE = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<!\w)\'(?:\\.|[^\'\\\n])+\'|^\s*#(?:\\\n|[^\n])*',
                     re.S | re.M)
TEMPLATE_ARGUMENTS = re.compile(r'(?<=\w)<[^<>;(){}?]*>')
HEAD = re.compile(r'\s*(?:else\b|do\b|case\b[^:?]*:(?!:)|default\s*:)')
CONTROL = re.compile(r'\s*(?:if(?:\s+constexpr)?|for|while|switch)\s*(?=\()')
# A declaration begins with a type and a name; `a = 1, b = 2` begins with a place and an operator, `f(), g()` with a call.
EXPRESSION = re.compile(r'\s*(?:\+\+|--|\*)?[\w:]+(?:(?:\.|->)\w+|\[[^\]]*\])*\s*(?:[-+*/|&^%]?=(?!=)|\+\+|--|\()')


def blank(match):
    return re.sub(r'[^\n]', ' ', match.group(0))


def nested_conditionals(code):
    depth, open_at = 0, []  # depths of brackets at which a conditional is open
    for place, char in enumerate(code):
        if char in '([{':
            depth += 1
        elif char in ')]}':
            depth -= 1
            open_at = [d for d in open_at if d <= depth]
        elif char == ',' or char == ';':
            open_at = [d for d in open_at if d < depth]
        elif char == '?':
            if open_at:
                yield place
            open_at.append(depth)


def after_brackets(code, start):
    depth = 0
    for place in range(start, len(code)):
        depth += (code[place] == '(') - (code[place] == ')')
        if depth == 0:
            return place + 1
    return len(code)


def comma_statements(code):
    for statement in re.finditer(r'[^;{}]*;', code):
        text, start = statement.group(0), 0
        while True:
            if head := HEAD.match(text, start):
                start = head.end()
            elif control := CONTROL.match(text, start):
                start = after_brackets(text, control.end())
            else:
                break
        declarators = code[:statement.start()].endswith('}') and '\n' not in text[:len(text) - len(text.lstrip())]
        if declarators or not EXPRESSION.match(text, start):  # `struct {…} a, b;`
            continue
        depth = 0
        for place in range(start, len(text)):
            depth += (text[place] in '([') - (text[place] in ')]')
            if depth < 0:  # the inside of a bracket that began before a brace
                break
            if depth == 0 and text[place] == ',':
                yield statement.start() + place
                break


def code_of(text):
    code = NO_CODE.sub(blank, text)
    while (less := TEMPLATE_ARGUMENTS.sub(blank, code)) != code:
        code = less
    return code


def main():
    files = subprocess.run(['git', 'ls-files', '-co', '--exclude-standard', '*.h', '*.cpp', '*.cu', '*.cuh'], cwd=TOP,
                           check=True, capture_output=True, text=True).stdout.split()
    breaches = []
    for path in sorted(f for f in files if (TOP / f).exists()):
        code = code_of((TOP / path).read_text())
        for what, places in (('a conditional operator within another', nested_conditionals(code)),
                             ('a comma joins two statements', comma_statements(code))):
            breaches += [f'{path}:{code.count(chr(10), 0, place) + 1}: {what}' for place in places]
    for breach in breaches:
        print(breach, file=sys.stderr)
    print(f'statements: {len(files)} files, {len(breaches)} breaches')
    return 1 if breaches else 0


if __name__ == '__main__':
    sys.exit(main())
