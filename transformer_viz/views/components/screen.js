// Tells Python whether the page is as narrow as a phone's.

const NARROW_PX = 640;

export default function ({ data, setStateValue }) {
  const isNarrow = window.innerWidth < NARROW_PX;
  if (data.narrow !== isNarrow) setStateValue("narrow", isNarrow);
}
