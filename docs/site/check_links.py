"""check_links.py SITE: every link and picture of every page of the site leads to a file of it, and
to a place in that file that is there. Addresses of other sites are not followed."""
import html.parser
import pathlib
import sys
import urllib.parse

site = pathlib.Path(sys.argv[1]).resolve()


class Page(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.places, self.links = {'', '__top'}, []

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.places |= {given[name] for name in ('id', 'name') if given.get(name)}
        for name in ('href', 'src'):
            if given.get(name) is not None:
                self.links.append(given[name])


pages = {}
for path in site.rglob('*.html'):
    pages[path] = Page()
    pages[path].feed(path.read_text(encoding='utf-8'))
dead, count = [], 0
for path, page in pages.items():
    for link in page.links:
        parts = urllib.parse.urlsplit(link)
        if parts.scheme or parts.netloc:
            continue
        count += 1
        name = urllib.parse.unquote(parts.path)
        start = site if name.startswith('/') else path.parent  # 404.html counts from the top
        target = (start / name.lstrip('/')).resolve() if name else path
        if target.is_dir():
            target /= 'index.html'
        place = urllib.parse.unquote(parts.fragment)
        if not target.is_relative_to(site) or not target.is_file():
            dead.append(f'{path.relative_to(site)}: no file {link}')
        elif target in pages and place not in pages[target].places:
            dead.append(f'{path.relative_to(site)}: no place {link}')
print(*sorted(set(dead)), sep='\n', end='\n' if dead else '')
print(f'{count} links of {len(pages)} pages: {len(dead)} lead nowhere')
if count < 1000:
    sys.exit('too few links: the check does not find the site')
sys.exit(bool(dead))
