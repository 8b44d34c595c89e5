// The field that finds charts by their titles and keys. The address contains its text, so that a link shows the same charts.

/** Returns a function to call when new charts are there. Charts have their words in `data-words`. */
export function finder(place) {
  const field = document.getElementById("chart-find");
  const told = document.getElementById("chart-found");

  let sifted = false; // whether a card may be hidden

  function show() {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    const cards = words.length || sifted ? [...place.querySelectorAll(".chart")] : [];
    sifted = words.length > 0;
    for (const card of cards) card.hidden = !words.every((word) => card.dataset.words.includes(word));
    for (const section of place.children) section.hidden = !section.querySelector(".chart:not([hidden])");
    place.classList.toggle("is-found", words.length > 0);
    told.textContent = words.length ? `${cards.filter((card) => !card.hidden).length} of ${cards.length.toLocaleString("en")} charts` : "";
  }

  field.value = new URLSearchParams(location.search).get("find") ?? "";
  field.addEventListener("input", () => {
    const address = new URL(location);
    if (field.value.trim()) address.searchParams.set("find", field.value);
    else address.searchParams.delete("find");
    history.replaceState(null, "", address);
    show();
  });
  return show;
}
