"""The pages of reference, from what the program and the sources say of themselves: the command line
from the manual that the option table writes, Python from stubs and docstrings, C++ from the public
headers and their comments."""
import ast
import html
import inspect
import keyword
import re
import subprocess
import typing


class Option(typing.NamedTuple):
    name: str    # --degree; of an argument its name
    value: str   # what stands behind it
    text: str


class Command(typing.NamedTuple):
    name: str
    about: str
    usage: str
    description: str
    examples: str
    sections: dict  # title: options


def plain(roff):
    text = re.sub(r'\\f[BIR]', '', roff).replace('\\-', '-').replace('\\&', '')
    return text.replace('\\(aq', "'").replace('\\e', '\\')


def command(program, name):
    """A command, read from its manual."""
    lines = subprocess.run([program, '--manual', name], capture_output=True, text=True,
                           check=True).stdout.splitlines()
    section, sections = '', {}
    for line in lines:
        if line.startswith(('.SH ', '.SS ')):
            section = plain(line[4:]).strip('"')
            sections[section] = []
        elif section:
            sections[section].append(line)

    def options(lines):
        found = []
        for i, line in enumerate(lines):
            if line == '.TP':
                head = lines[i + 1]
                words = re.match(r'(?:\.I )?(?:\\fB(.*?)\\fR)?(.*)', head)
                name = plain(words[1] or words[2]).strip()
                value = plain(words[2]).strip() if words[1] else ''
                end = next((j for j in range(i + 2, len(lines)) if lines[j] == '.TP'), len(lines))
                text = ' '.join(' '.join(map(plain, lines[i + 2:end])).split())
                found.append(Option(name, value, text))
        return found

    text = {key: [line for line in value if not line.startswith('.')]
            for key, value in sections.items()}
    usage = ' '.join([f'odecast {name}', *map(plain, text['SYNOPSIS'])])
    named = {key.capitalize() if key.isupper() else key: options(value)
             for key, value in sections.items() if '.TP' in value}
    return Command(name, plain(' '.join(text['NAME'])).split(' - ', 1)[1], usage,
                   plain(' '.join(text['DESCRIPTION'])),
                   '\n'.join(map(plain, text.get('EXAMPLES', []))), named)


def commands(program):
    manual = subprocess.run([program, '--manual'], capture_output=True, text=True,
                            check=True).stdout
    return [command(program, plain(name))
            for name in re.findall(r'^\.BR odecast\\-(\S+) \(1\)$', manual, re.M)]


def listed(entries):
    """Entries of (head, anchor, text) as a list of definitions."""
    rows = [f'<dt id="{anchor}">{head}</dt><dd>{text}</dd>' for head, anchor, text in entries]
    return '<dl class="options">\n' + '\n'.join(rows) + '\n</dl>\n'


def in_code(text):
    return f'<code>{html.escape(text, quote=False)}</code>'


def options_in(text):
    """Prose with its options in code and its pages linked, in a page two folders down."""
    text = re.sub(r'(?<![\w-])(--?[a-z][a-z-]*)', r'<code>\1</code>',
                  html.escape(text, quote=False))
    return re.sub(r'docs/(\w+)\.md', r'<a href="../../\1.html">\1</a>', text)


def anchor_of(option):
    return re.sub(r'[^\w-]', '', option.name.split('--')[-1]) or 'argument'


def command_page(command):
    parts = [f'# odecast {command.name}\n\n{command.about.capitalize()}.\n',
             f'```text\n{command.usage}\n```\n', f'<p>{options_in(command.description)}</p>\n']
    if command.examples:
        parts.append(f'## Examples\n\n```sh\n{command.examples}\n```\n')
    for title, options in command.sections.items():
        prefix = 'argument-' if title == 'Arguments' else ''
        parts.append(f'## {title}\n\n' + listed(
            (in_code(f'{o.name} {o.value}'.strip()), prefix + anchor_of(o), options_in(o.text))
            for o in options))
    return '\n'.join(parts)


def command_line(program):
    """Pages by name."""
    all_commands = commands(program)
    version = subprocess.run([program, '--version'], capture_output=True, text=True).stdout.strip()
    rows = '\n'.join(f'| [{c.name}]({c.name}.md) | {c.about} |' for c in all_commands)
    index = ('# The command line\n\nThe pages below are what the option table of '
             f'`{version}` says of itself, as `odecast COMMAND --help` does.\n\n'
             f'| command | what it does |\n|---|---|\n{rows}\n\nExit codes: 0 done, 1 finished but '
             'not to be trusted, 2 wrong usage, 3 bad input data, 4 file or system failure, 130 '
             'and 143 interrupted.\n')
    return {'index': index, **{c.name: command_page(c) for c in all_commands}}


# Which command's options are a function's keywords.
VERBS = {'read': 'fit', 'simulate': 'simulate', 'fit': 'fit', 'forecast': 'forecast',
         'score': 'score', 'lyapunov': 'lyapunov', 'attractor': 'attractor', 'tune': 'tune',
         'Model.forecast': 'forecast', 'Model.evaluate': 'evaluate',
         'Model.calibrate': 'calibrate', 'Model.equations': 'equations',
         'Forecast.report': 'forecast', 'Data.split': 'split', 'ODERegressor.__init__': 'fit'}


def spelled(option):
    name = option.replace('-', '_')
    return name + '_' if keyword.iskeyword(name) else name


def prose(text):
    """Markdown of a docstring: NumPy's parameters, roles and examples."""
    lines, out, i = inspect.cleandoc(text).splitlines(), [], 0
    while i < len(lines):
        line = lines[i]
        following = lines[i + 1] if i + 1 < len(lines) else ''
        if line.startswith('>>> '):
            end = next((j for j in range(i, len(lines)) if not lines[j]), len(lines))
            out += ['', '```pycon', *lines[i:end], '```', '']
            i = end
        elif re.fullmatch(r'-{3,}', following):
            out += [f'**{line}**', '']
            i += 2
        elif re.match(r'\w[\w, *]* : ', line) and following.startswith('    '):
            name, kind = line.split(' : ', 1)
            out += ['', f'`{name}` : {kind}', f':   {following.strip()}']
            i += 2
            while i < len(lines) and lines[i].startswith('    '):
                out.append('    ' + lines[i].strip())
                i += 1
        else:
            out.append(line)
            i += 1
    def words(text):
        text = re.sub(r':\w+:`~?([^`]+)`', r'`\1`', text)
        return re.sub(r'``([^`]+)``', r'`\1`', text)

    pieces = re.split(r'(^```.*?^```)', '\n'.join(out), flags=re.S | re.M)
    return ''.join(p if p.startswith('```') else words(p) for p in pieces)


class Python:
    def __init__(self, package, program):
        self.stubs = ast.parse((package / '__init__.pyi').read_text(encoding='utf-8'))
        self.docs = {}
        for path in sorted(package.glob('*.py')):
            tree = ast.parse(path.read_text(encoding='utf-8'))
            if path.name == '__init__.py':
                self.docs[''] = ast.get_docstring(tree)
            self.collect(tree.body, '')
        self.commands = {c.name: c for c in commands(program)}

    def collect(self, body, prefix):
        for node in body:
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                self.docs.setdefault(prefix + node.name, ast.get_docstring(node) or '')
            if isinstance(node, ast.ClassDef):
                self.collect(node.body, node.name + '.')
            elif (isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)
                  and getattr(node.value.func, 'id', '') == 'Part'):
                self.docs[prefix + node.targets[0].id] = ast.literal_eval(node.value.args[1])

    def keywords(self, name, function):
        """The list of the keywords that are options of a command, and their names."""
        verb = self.commands.get(VERBS.get(name))
        if not verb:
            return '', set()
        options = {spelled(anchor_of(o)): o for title, options in verb.sections.items()
                   if title != 'Arguments' for o in options}
        entries = []
        given = function.args.kwonlyargs or function.args.args
        defaults = function.args.kw_defaults if function.args.kwonlyargs else (
            [None] * (len(given) - len(function.args.defaults)) + function.args.defaults)
        for argument, default in zip(given, defaults):
            option = options.get(argument.arg)
            if option:
                value = ast.unparse(default) if default else ''
                text = re.sub(r'--([a-z-]+)', lambda m: spelled(m[1]), option.text)
                kind = ast.unparse(argument.annotation)
                entries.append((f'{in_code(argument.arg)} : {in_code(kind)} = {in_code(value)}',
                                f'{name}-{argument.arg}',
                                html.escape(re.sub(r' ?\[default: .*?\]', '', text), quote=False)))
        return listed(entries), {e[1].split('-', 1)[1] for e in entries}

    def function(self, node, prefix, depth):
        name = prefix + node.name
        kind = [d.id for d in node.decorator_list if isinstance(d, ast.Name)]
        doc = prose(self.docs.get(name) or '')
        if 'property' in kind:
            return f'`{node.name}` : `{ast.unparse(node.returns)}`\n:   {" ".join(doc.split())}\n'
        words, named = self.keywords(name, node)
        shown = ast.parse(ast.unparse(node)).body[0]
        shown.decorator_list = []
        if named:
            kept = [(a, d) for a, d in zip(shown.args.kwonlyargs, shown.args.kw_defaults)
                    if a.arg not in named]
            shown.args.kwonlyargs = [a for a, _ in kept]
            shown.args.kw_defaults = [d for _, d in kept]
            shown.args.kwarg = ast.arg('options')
            if not node.args.kwonlyargs:
                shown.args.args, shown.args.defaults = shown.args.args[:1], []
        signature = ast.unparse(shown).rsplit(':', 1)[0].removeprefix('def ')
        title = node.name if node.name != '__init__' else 'Options'
        name = prefix + title
        doc = doc.replace('%OPTIONS%', words) if '%OPTIONS%' in doc else f'{doc}\n\n{words}'
        return (f'{"#" * depth} {title} {{ #{name} }}\n\n```python\n{signature}\n```\n\n{doc}\n')

    def page(self):
        out = ['# The package\n\n' + prose(self.docs['']) + '\n']
        classes = [n for n in self.stubs.body if isinstance(n, ast.ClassDef)]
        out.append('## Functions\n')
        out += [self.function(n, '', 3) for n in self.stubs.body if isinstance(n, ast.FunctionDef)]
        for node in classes:
            out.append(f'## {node.name} {{ #{node.name} }}\n\n'
                       + prose(self.docs.get(node.name) or '') + '\n')
            for member in node.body:
                if isinstance(member, ast.FunctionDef) and (not member.name.startswith('__')
                                                            or member.name == '__init__'):
                    out.append(self.function(member, node.name + '.', 3))
        return '\n'.join(out)


def declarations(text):
    """The declarations of a header at the level of its namespace: comment and code."""
    found, comment, code, depth = [], [], [], 0
    for line in text.splitlines():
        bare = re.sub(r'//.*|"(?:\\.|[^"\\])*"', '', line)
        if not code and re.match(r'#|namespace [\w:]+ \{|\}  // namespace|using namespace', line):
            comment = []
        elif not code and re.match(r'///? ?', line):
            comment.append(re.sub(r'^///? ?', '', line))
        elif not code and not line.strip():
            comment = []
        else:
            code.append(line)
            depth += bare.count('{') + bare.count('(') - bare.count('}') - bare.count(')')
            if depth == 0 and re.search(r'[;}]\s*$', bare.rstrip()):
                found.append((comment, code))
                comment, code = [], []
    return found


def declared(code):
    text = re.sub(r'template <.*?>\s*|\[\[\w+\]\]\s*', '', ' '.join(code))
    match = re.match(r'(?:struct|class|enum class|enum|using|concept) (\w+)', text)
    if match:
        return match[1]
    match = re.search(r'([\w~]+|operator\S+)\s*\(', text) if '=' not in text.split('(')[0] else None
    match = match or re.search(r'(\w+)\s*(?:=|\{|;)', text)
    return match[1] if match else ''


def header_section(path, name):
    text = path.read_text(encoding='utf-8')
    out, used = [f'## {name} {{ #{path.stem} }}\n\n`#include "odecast/{name}"`\n'], set()
    head = re.match(r'#pragma once\n\n((?://[^\n]*\n)+)\n', text)
    if head:
        out.append(re.sub(r'^///? ?', '', head[1], flags=re.M))
    for comment, code in declarations(text):
        title = declared(code)
        if title and title not in used:  # one place for functions of one name
            used.add(title)
            out.append(f'### {title} {{ #{path.stem}-{re.sub(r"[^0-9A-Za-z_]", "-", title)} }}\n')
        out.append(html.escape('\n'.join(comment), quote=False) + '\n' if comment else '')
        out.append('```cpp\n' + '\n'.join(code) + '\n```\n')
    return '\n'.join(out)


def cpp(library):
    """Pages by name: a page for every room that has public headers."""
    pages, rows = {}, []
    for room in sorted(p for p in library.iterdir() if p.is_dir()):
        headers = sorted(room.glob('*.hpp'))
        if headers:
            pages[room.name] = f'# {room.name}\n\n' + '\n'.join(
                header_section(path, f'{room.name}/{path.name}') for path in headers)
            links = ', '.join(f'[{p.stem}]({room.name}.md#{p.stem})' for p in headers)
            rows.append(f'| [{room.name}]({room.name}.md) | {links} |')
    whole = re.findall(r'#include "odecast/(\w+)/(\w+)\.hpp"',
                       (library / 'odecast.hpp').read_text(encoding='utf-8'))
    users = ', '.join(f'[{name}]({room}.md#{name})' for room, name in whole)
    pages['index'] = ('# The C++ library\n\n`#include <odecast/odecast.hpp>` has all that users of '
                      f'the library need: {users}. Each room can be included alone, too; these are '
                      'the public headers with their comments.\n\n| room | headers |\n|---|---|\n'
                      + '\n'.join(rows) + '\n')
    return pages
