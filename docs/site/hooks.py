"""Formulas, $…$ and $$…$$, become MathML, which browsers show without scripts; of what commands
print, rows of tables are marked, which must not be wrapped."""
import re

import latex2mathml.converter

CODE = re.compile(r'(^```.*?^```|`[^`\n]+`)', re.S | re.M)
MATH = re.compile(r'\$\$(.+?)\$\$|(?<![\\$\w])\$(?!\s)([^$]+?)(?<!\s)\$(?!\d)', re.S)
MARK = 'formula{}place'
formulas = []


def mathml(latex, display):
    latex = re.sub(r'\\[lr]Vert', r'\\Vert', ' '.join(latex.split()))
    latex = re.sub(r'\\(math[a-z]+) (\w)', r'\\\1{\2}', latex)
    latex = re.sub(r'\\tag\{(.*?)\}', r'\\qquad (\1)', latex)
    text = latex2mathml.converter.convert(latex, display=display).replace('>\\Vert<', '>‖<')
    if '\\' in text or '<merror' in text:
        raise ValueError(f'no formula: {latex}')
    # Names of functions stand apart from what is around them.
    return re.sub(r'<mi>(ln|log|exp|sin|cos|tanh)</mi>',
                  r'<mo lspace="0.17em" rspace="0.17em">\1</mo>', text)


def on_page_markdown(markdown, **_):
    def place(match):
        block = match[1] is not None
        formulas.append(mathml(match[1] or match[2], 'block' if block else 'inline'))
        mark = MARK.format(len(formulas) - 1)
        return f'\n\n{mark}\n\n' if block else mark

    parts = CODE.split(markdown)
    return ''.join(p if p.startswith('`') else MATH.sub(place, p) for p in parts)


def on_page_content(html, **_):
    html = re.sub(r'<span class="go">(?=[^<\n]*\S {3,}\S)', '<span class="go row">', html)
    html = re.sub(r'<p>(formula\d+place)</p>', r'\1', html)
    return re.sub(r'formula(\d+)place', lambda m: formulas[int(m[1])], html)
