// The elements of a sentence; `terms` has what each of its terms means, and where a lesson explains it.
function pieces(sentence, terms) {
  return sentence.map(([style, text]) => {
    const piece = document.createElement({ code: "code", strong: "strong", term: "dfn" }[style] ?? "span");
    piece.textContent = text;
    if (style === "term") {
      piece.tabIndex = 0;
      const { means, lesson } = terms[text];
      piece.setAttribute("aria-description", means);
      if (lesson) piece.append(leadsTo(lesson));
    }
    return piece;
  });
}

// Its words are drawn by the style, as what a term means is: the text of a sentence is what a screen reader says at each step.
function leadsTo({ href, words }) {
  const link = Object.assign(document.createElement("a"), { href, target: "_self" });
  link.setAttribute("aria-label", words);
  return link;
}
