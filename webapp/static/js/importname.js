// The name of a dataset is filled in from the name of the file that is imported, until somebody writes another one.
const [file, name] = [document.getElementById("id_file"), document.getElementById("id_name")];
const ENDINGS = /(\.(jsonl|ndjson|json|csv|tsv|parquet|eval|zip|gz))+$/i;
const LONGEST = 120; // characters, as `dataset_name` on the server
let filled = "";

// before htmx asks for the preview, which depends on the name
document.addEventListener("change", ({ target }) => {
  if (target !== file || !file.files.length || name.value !== filled) return;
  name.value = filled = file.files[0].name.replace(ENDINGS, "").slice(0, LONGEST);
}, true);
