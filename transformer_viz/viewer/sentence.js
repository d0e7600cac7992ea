// @ts-check
// Sentences as elements: every text is set as text, so that what a user typed is never markup.

// The elements of a sentence; `terms` has what each of its terms means, and where a lesson explains it.
export function pieces(sentence, terms) {
  return sentence.map(([style, text]) => {
    const piece = document.createElement({ code: "code", strong: "strong", term: "dfn" }[style] ?? "span");
    piece.textContent = text;
    if (style === "quiet") piece.className = style;
    if (style === "term") {
      piece.tabIndex = 0;
      const { means, lesson } = terms[text];
      piece.setAttribute("aria-description", means);
      if (lesson) piece.append(leadsTo(lesson, means));
    }
    return piece;
  });
}

// Its words are drawn by the style, as what a term means is: the text of a sentence is what a screen reader says at each step.
function leadsTo({ href, words }, means) {
  const link = Object.assign(document.createElement("a"), { href, target: "_self" });
  link.setAttribute("aria-label", words);
  link.dataset.means = means;
  return link;
}

const SIGNS = { amp: "&", lt: "<", gt: ">", quot: '"' };

// Plotly's labels are markup, in which a token is escaped: its own tags are left out, and then the token is what it was.
export function plainText(label) {
  const bare = String(label).replaceAll("<br>", ", ").replace(/<[^<>]*>/g, "");
  return bare.replace(/&(?:#(\d+)|(amp|lt|gt|quot));/g, (_, code, name) => (code ? String.fromCodePoint(Number(code)) : SIGNS[name]));
}
