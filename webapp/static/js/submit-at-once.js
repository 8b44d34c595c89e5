// A one-time link is used by a POST, so that programs which preview links do not use it up. This sends the form, so people need not click.
document.querySelector("form[data-submit-at-once]")?.requestSubmit();
