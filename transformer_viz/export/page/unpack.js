// Unpacks plotly.js, which stands compressed in the page. `plotlyReady` is when the figures can be drawn.
window.plotlyReady = (async () => {
  const packed = Uint8Array.from(atob(document.getElementById("plotly-packed").textContent), (letter) => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  const element = document.createElement("script");
  element.textContent = await new Response(stream).text();
  document.head.append(element);
})();
