// The elements of a sentence; `terms` has what each of its terms means.
function pieces(sentence, terms) {
  return sentence.map(([style, text]) => {
    const piece = document.createElement({ code: "code", strong: "strong", term: "dfn" }[style] ?? "span");
    piece.textContent = text;
    if (style === "term") {
      piece.tabIndex = 0;
      piece.setAttribute("aria-description", terms[text]);
    }
    return piece;
  });
}
