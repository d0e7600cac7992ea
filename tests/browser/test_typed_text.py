"""Where Streamlit reads Markdown, what is typed or stands in a file shows as it is: no link, no icon, no colour, no formula."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from benchmarks import served

pytestmark = pytest.mark.browser

# One a line. GitHub's autolinks are found in the text that is left once everything escaped has been read; so are Streamlit's
# own arrows and icons.
TYPED = r"""
https://evil.example/x
http://evil.example
HTTPS://EVIL.EXAMPLE
see https://evil.example/a?b=c&d#e, please
(https://evil.example)
a:https://evil.example
xhttps://evil.example
https://evil.example:8501/x_y_z
https://https://evil.example
https://www.evil.example
http://www.www.evil.example/@a@b.example
www.evil.example
WWW.evil.example
Www.Evil.example/x
a www.evil.example b
(www.evil.example)
www.www.evil.example
me@evil.example
me+you@evil.example
a.b-c_d@evil.example
<me@evil.example>
mailto:me@evil.example
xmpp:me@evil.example/a
a@b@evil.example
to me@evil.example.
<https://evil.example>
[a](https://evil.example)
[a][b]
[b]: https://evil.example
![a](https://evil.example/a.png)
x[^1]
[^1]: https://evil.example
^[a]
-> <- <-> -- >= <= ~=
a -> b
--
->
:smile:
:+1:
:material/home:
:material_home:
:streamlit:
:small[a]
:red[a]
:blue-background[a]
:gray-badge[a]
**a**
_a_
~~a~~
`a`
# a
> a
- a
1. a
|a|b|
$x$
$$x$$
<b>a</b>
&lt;
""".split("\n")[1:-1]
SCRIPT = """
import streamlit as st
from transformer_viz.views.components.markdown import literal
for number, typed in enumerate({typed!r}):
    with st.container(key=f"plain-{{number}}"):
        st.markdown(literal(typed))
    with st.container(key=f"within-{{number}}"):
        st.warning(f"Before **{{literal(typed)}}**.")
    with st.container(key=f"button-{{number}}"):
        st.button(literal(typed), key=number)
"""


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    script = tmp_path_factory.mktemp("typed") / "page.py"
    script.write_text(SCRIPT.format(typed=TYPED), encoding="utf-8")
    with served.server(script) as running:
        yield running.url


def test_it_is_text(new_page: Page, shown: str) -> None:
    new_page.goto(shown)
    expect(new_page.locator(f".st-key-button-{len(TYPED) - 1} button")).to_be_visible()
    assert new_page.locator(".stMain :is(a, img, code, em, del, sup, svg.icon, h1, table, blockquote, li, .katex)").count() == 0
    for number, typed in enumerate(TYPED):
        # Of the spaces in a line the page shows one.
        for place, words in (("plain", typed), ("within", f"Before {typed}."), ("button", typed)):
            expect(new_page.locator(f".st-key-{place}-{number}")).to_have_text(words, use_inner_text=True)
