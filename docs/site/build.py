"""build.py SOURCE PROGRAM PLACE: the pages of the site and its mkdocs.yml into PLACE.

README, changelog, docs and decisions as they are, theory in a page for each of its sections,
reference from what the program and the sources say of themselves. Links follow the pages; one to a
file that is no page becomes its text."""
import os
import pathlib
import re
import shutil
import subprocess
import sys

import yaml

import reference

source, program, place = (pathlib.Path(p).resolve() for p in sys.argv[1:4])
pages = place / 'pages'
LINK = re.compile(r'(!?)\[((?:[^\]\[]|\[[^\]]*\])*)\]\(([^)\s]+)\)')
CODE = re.compile(r'(^```.*?^```|`[^`\n]+`)', re.S | re.M)


def title_of(text):
    return re.search(r'^# (.+)$', text, re.M)[1].strip()


def theory(text):
    """The page of theory in parts: name and text. §N leads to its part."""
    head, *rest = re.split(r'^## (?=\d+\. )', text, flags=re.M)
    names = {}
    for part in rest:
        number, title = re.match(r'(\d+)\. (.+)', part).groups()
        slug = re.sub(r'[^a-z0-9]+', '-', title.lower()).strip('-')
        names[number] = f'{int(number):02}-{slug}', title

    def linked(part):
        pieces = CODE.split(part)
        return ''.join(p if p.startswith('`') else re.sub(
            r'§(\d+)', lambda m: f'[§{m[1]}](theory/{names[m[1]][0]}.md)' if m[1] in names
            else m[0], p) for p in pieces)

    contents = '\n'.join(f'{n}. [{title}](theory/{name}.md)' for n, (name, title) in names.items())
    yield 'index', linked(head) + '\n' + contents + '\n'
    for part in rest:
        number = re.match(r'\d+', part)[0]
        yield names[number][0], linked('# ' + part)


# Every page: where its text is from (links in it are relative to that), where it goes, its text.
texts = {}


def add(origin, target, text=None):
    texts[target] = origin, text if text is not None else (source / origin).read_text('utf-8')


add('README.md', 'index.md')
add('CHANGELOG.md', 'changelog.md')
add('CONTRIBUTING.md', 'contributing.md')
add('examples/data/README.md', 'data-sets.md')
for path in sorted((source / 'docs').glob('*.md')):
    if path.name != 'theory.md':
        add(f'docs/{path.name}', path.name)
for folder in ('tutorials', 'decisions'):
    for path in sorted((source / 'docs' / folder).glob('*.md')):
        add(f'docs/{folder}/{path.name}', f'{folder}/{path.name}')
for name, text in theory((source / 'docs/theory.md').read_text('utf-8')):
    add('docs/theory.md', f'theory/{name}.md', text)
decisions = {t: title_of(text) for t, (_, text) in texts.items() if t.startswith('decisions/')}
add('docs/decisions/index.md', 'decisions/index.md',
    '# Decisions\n\nWhy things are as they are.\n\n'
    + '\n'.join(f'1. [{title}]({pathlib.Path(t).name})' for t, title in decisions.items()) + '\n')

# Where a link to a file of the project leads on the site.
goes = {origin: target for target, (origin, _) in reversed(list(texts.items()))}
goes |= {'docs/theory.md': 'theory/index.md', 'docs/decisions': 'decisions/index.md',
         'docs/tutorials': 'tutorials/your-csv.md'}
goes |= {f'docs/theory/{pathlib.Path(t).name}': t for t in texts if t.startswith('theory/')}
for name in ('forecast.svg', 'reproduction.json'):
    goes[f'docs/{name}'] = name
    shutil.copyfile(source / 'docs' / name, pages / name)

dead = []


def relinked(origin, target, text):
    def follow(match):
        picture, words, link = match.groups()
        if re.match(r'[a-z]+:|#', link):
            return match[0]
        file, _, anchor = link.partition('#')
        asked = os.path.normpath(os.path.join(os.path.dirname(origin), file))
        lead = goes.get(asked)
        made_there = asked.removeprefix('docs/')  # by the tutorials' commands
        if lead is None and (pages / made_there).is_file():
            lead = made_there
        if lead is None:
            if not (source / asked).exists():
                dead.append(f'{origin}: {link}')
            return words
        if words.strip('`') in (link, file, asked, os.path.basename(file)) and lead in texts:
            words = title_of(texts[lead][1])
        lead = os.path.relpath(lead, os.path.dirname(target) or '.')
        return f'{picture}[{words}]({lead}{"#" + anchor if anchor else ""})'

    pieces = re.split(r'(^```.*?^```)', text, flags=re.S | re.M)
    return ''.join(p if p.startswith('```') else LINK.sub(follow, p) for p in pieces)


for target, (origin, text) in texts.items():
    (pages / target).parent.mkdir(parents=True, exist_ok=True)
    (pages / target).write_text(relinked(origin, target, text), encoding='utf-8')
if dead:
    sys.exit('dead links:\n' + '\n'.join(dead))

made = {'reference/command-line': reference.command_line(str(program)),
        'reference/cpp': reference.cpp(source / 'odecast'),
        'reference': {'python': reference.Python(source / 'python/odecast', str(program)).page()}}
for folder, named in made.items():
    (pages / folder).mkdir(parents=True, exist_ok=True)
    for name, text in named.items():
        (pages / folder / f'{name}.md').write_text(text, encoding='utf-8')


def under(folder):
    names = sorted(made[folder]) if folder in made else sorted(
        pathlib.Path(t).stem for t in texts if t.startswith(folder + '/'))
    return [f'{folder}/index.md'] + [f'{folder}/{n}.md' for n in names if n != 'index']


nav = [
    {'Start': ['index.md', {'The commands': 'commands.md'}, {'Data': 'data.md'},
               {'Real files': 'real-files.md'}, {'Terms': 'terms.md'}, {'Filter': 'filter.md'},
               {'Python': 'python.md'},
               {'Choosing': 'choosing.md'}]},
    {'Tutorials': [f'tutorials/{n}.md' for n in (
        'your-csv', 'sensor', 'pendulum', 'counts', 'sunspots', 'band', 'pysindy', 'paper')]
     + [{'The data sets': 'data-sets.md'}]},
    {'Gallery': 'tutorials/gallery.md'},
    {'Reference': [{'Command line': under('reference/command-line')},
                   {'Python': 'reference/python.md'}, {'C++': under('reference/cpp')}]},
    {'Theory': under('theory') + [{'The default method': 'trajectory.md'},
                                  {'The paper': 'paper.md'},
                                  {'The paper, reproduced': 'reproduction.md'}]},
    {'Project': [{'Reliability': 'reliability.md'}, {'Performance': 'performance.md'},
                 {'Contributing': 'contributing.md'}, {'Changelog': 'changelog.md'},
                 {'Decisions': under('decisions')}]},
]
version = subprocess.run([program, '--version'], capture_output=True, text=True).stdout.strip()
cited = re.search(r'^version: (.+)$', (source / 'CITATION.cff').read_text('utf-8'), re.M)[1]
if version != f'odecast {cited}':
    sys.exit(f'CITATION.cff cites {cited}, the program is {version}')
for name in ('site.css', 'hooks.py'):
    shutil.copyfile(source / 'docs/site' / name,
                    (pages if name.endswith('.css') else place) / name)
settings = {'INHERIT': str(source / 'docs/site/mkdocs.yml'), 'nav': nav,
            'copyright': f'{version}, Apache-2.0'}
(place / 'mkdocs.yml').write_text(yaml.safe_dump(settings, allow_unicode=True, sort_keys=False))
