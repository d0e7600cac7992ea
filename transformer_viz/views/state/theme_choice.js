// Streamlit keeps a browser's theme under the path of each page, and reads it where a page is loaded.

const keyOf = (path) => `stActiveTheme-${path}-v2`;

export default function ({ parentElement, data }) {
  const buttons = [...parentElement.querySelectorAll("button")];
  const base = location.pathname.slice(0, location.pathname.lastIndexOf("/") + 1);
  const chosen = JSON.parse(localStorage.getItem(keyOf(location.pathname)) ?? '"System"');
  for (const [place, part] of [parentElement.querySelector("legend"), ...buttons].entries()) part.textContent = data.words[place];
  for (const button of buttons) {
    button.setAttribute("aria-pressed", button.value === chosen);
    button.onclick = () => {
      for (const page of data.pages) localStorage.setItem(keyOf(base + page), JSON.stringify(button.value));
      location.reload();
    };
  }
}
