// The elements of a sentence.
function pieces(sentence) {
  return sentence.map(([style, text]) => {
    const piece = document.createElement(style === "code" ? "code" : style === "strong" ? "strong" : "span");
    piece.textContent = text;
    return piece;
  });
}
