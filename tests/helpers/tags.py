"""Language tags in canonical form, and the ways in which people write them."""

from hypothesis import strategies as st

LANGUAGES = st.sampled_from(["de", "en", "es", "pt", "sr", "zh", "fil", "yue"])
# No `Latn`, which a canonical tag leaves out of languages that are written in it alone.
SCRIPTS = st.sampled_from(["Deva", "Cyrl", "Hans", "Hant", "Arab"])
REGIONS = st.sampled_from(["BR", "TW", "CH", "US", "RS", "AR", "BE", "419"])
NAMES = st.builds(lambda *parts: "-".join(filter(None, parts)), LANGUAGES, SCRIPTS | st.just(""), REGIONS | st.just(""))
"""Tags that names of files may have: a language, then perhaps a script, then perhaps a region."""
TAGS = st.builds(
    lambda tag, *more: "-".join(filter(None, (tag, *more))),
    NAMES,
    st.sampled_from(["", "rozaj", "1996", "valencia"]),
    st.sampled_from(["", "u-co-phonebk", "t-en-us"]),
    st.sampled_from(["", "x-a-whatever"]),
)
"""All that BCP 47 allows behind a language of two or three letters."""


@st.composite
def written(draw, tags=TAGS, lower=False):
    """Draw a canonical tag, and a way to write it: any separator, any case, the language in `lower` case if asked."""
    tag = draw(tags)
    parts = [draw(st.sampled_from([part.lower(), part.upper(), part.title(), part])) for part in tag.split("-")]
    if lower:
        parts[0] = parts[0].lower()
    marks = draw(st.lists(st.sampled_from("-_"), min_size=len(parts), max_size=len(parts)))
    return tag, "".join(f"{mark}{part}" for mark, part in zip(marks, parts, strict=True))[1:]
