// Touch screens have no pointer that could rest on something: show its title.
(function () {
  var told = document.getElementById("told");
  document.addEventListener("click", function (event) {
    var at = event.target.closest ? event.target.closest("svg *") : null;
    var title = null;
    for (; at && at.tagName !== "svg" && !title; at = at.parentNode) {
      for (var i = 0; i < at.children.length; i++) {
        if (at.children[i].tagName === "title") { title = at.children[i]; }
      }
    }
    told.hidden = !title;
    if (title) { told.textContent = title.textContent; }
  });
})();
