"""What makes a report's timeline move. It reads the data block, and writes text nodes only: nothing recorded ever becomes markup."""

SCRIPT = r"""
"use strict";
(function () {
  var data = JSON.parse(document.getElementById("data").textContent);
  var HEIGHT = 32, KIND = 0, NUMBER = 1, TYPE = 2, NAME = 3, STATE = 4, TOOK = 5, AT = 6, DEPTH = 7, FACTS = 8, INPUT = 9, OUTPUT = 10, ERROR = 11, CHOICE = 12, NOTES = 13, CUT = 14;
  // Characters that move the cursor, hide, or turn the reading direction are shown by their numbers.
  var HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb]|[\ud800-\udbff](?![\udc00-\udfff])|(?:[^\ud800-\udbff]|^)[\udc00-\udfff]|\udb40[\udc00-\udfff]/g;
  var which = 0, rows = [], shown = [], picked = -1, filter = "all", words = "";
  var list = document.getElementById("list"), space = document.getElementById("space"), box = document.getElementById("rows"), detail = document.getElementById("detail");
  var search = document.getElementById("search"), found = document.getElementById("found");

  function put(parent, text) {
    var from = 0;
    text = String(text);
    text.replace(HIDDEN, function (match, at) {
      parent.appendChild(document.createTextNode(text.slice(from, at)));
      var mark = document.createElement("span");
      mark.className = "esc";
      mark.textContent = Array.prototype.map.call(match, function (c) { return "\\u" + ("000" + c.charCodeAt(0).toString(16)).slice(-4); }).join("");
      parent.appendChild(mark);
      from = at + match.length;
      return match;
    });
    parent.appendChild(document.createTextNode(text.slice(from)));
    return parent;
  }
  function element(name, cls, text) {
    var made = document.createElement(name);
    if (cls) made.className = cls;
    return text === undefined || text === null ? made : put(made, text);
  }
  function took(ms) {
    if (ms === null || ms === undefined) return "";
    if (ms < 1000) return Math.round(ms) + " ms";
    if (ms < 60000) return (ms / 1000).toFixed(1) + " s";
    return Math.floor(ms / 60000) + " min " + Math.round(ms % 60000 / 1000) + " s";
  }
  function about(row) {
    if (row[KIND] !== "s") return (row[INPUT] || "").slice(0, 300).replace(/\s+/g, " ");
    if (row.said === undefined) {
      row.said = "";
      try {
        var value = JSON.parse(row[INPUT]), keys = ["command", "cmd", "file_path", "path", "url", "pattern", "query", "prompt", "description"];
        for (var i = 0; i < keys.length && !row.said; i++) {
          var one = value && value[keys[i]];
          if (Array.isArray(one)) one = one.join(" ");
          if (typeof one === "string") row.said = one;
        }
      } catch (problem) { /* cut, or text */ }
      row.said = (row.said || row[ERROR] || row[INPUT] || "").slice(0, 300).replace(/\s+/g, " ");
    }
    return row.said;
  }
  function fits(row) {
    if (filter === "blocked" && row[STATE] !== "blocked" && row[STATE] !== "guard") return false;
    if (filter === "errors" && row[STATE] !== "error" && row[STATE] !== "blocked") return false;
    if (filter === "tools" && row[TYPE] !== "tool_call" && row[TYPE] !== "guard_check") return false;
    if (filter === "prompts" && row[TYPE] !== "user_prompt" && row[TYPE] !== "output") return false;
    if (!words) return true;
    if (row.low === undefined) row.low = [row[NAME], row[INPUT], row[OUTPUT], row[ERROR], row[NUMBER] ? "#" + row[NUMBER] : ""].join("\n").toLowerCase();
    return row.low.indexOf(words) >= 0;
  }
  function narrow() {
    var keep = picked >= 0 ? shown[picked] : null;
    shown = rows.filter(fits);
    picked = keep ? shown.indexOf(keep) : -1;
    found.textContent = shown.length === rows.length ? rows.length + " rows" : shown.length + " of " + rows.length + " rows";
    space.style.height = shown.length * HEIGHT + "px";
    draw();
  }
  // On paper there is no scrolling: the rows are written out, as many as anybody would print.
  var PRINTED = 500, printing = false, unprinted = document.getElementById("unprinted");
  function paper(on) {
    printing = on;
    unprinted.textContent = on && shown.length > PRINTED ? shown.length - PRINTED + " more rows are in the file, and not printed." : "";
    draw();
  }
  window.addEventListener("beforeprint", function () { paper(true); });
  window.addEventListener("afterprint", function () { paper(false); });
  function draw() {
    var first = Math.max(0, Math.floor(list.scrollTop / HEIGHT) - 5), last = Math.min(shown.length, first + Math.ceil(list.clientHeight / HEIGHT) + 10);
    if (printing) { first = 0; last = Math.min(shown.length, PRINTED); }
    var part = document.createDocumentFragment();
    for (var i = first; i < last; i++) part.appendChild(line(shown[i], i));
    box.style.transform = "translateY(" + first * HEIGHT + "px)";
    box.replaceChildren(part);
  }
  function line(row, index) {
    var made = element("div", "row" + (row[KIND] === "e" ? row[TYPE] === "user_prompt" ? " event prompt" : " event" : ""));
    made.setAttribute("role", "option");
    made.id = "row-" + index;
    made.dataset.index = index;
    made.setAttribute("aria-selected", index === picked ? "true" : "false");
    made.appendChild(element("span", "number", row[NUMBER] || ""));
    var name = element("span", "name", row[NAME]);
    if (row[DEPTH]) name.style.marginLeft = Math.min(row[DEPTH], 8) * 14 + "px";
    made.appendChild(name);
    if (row[STATE] === "blocked" || row[STATE] === "error") made.appendChild(element("span", "tag bad", row[STATE]));
    if (row[STATE] === "guard") made.appendChild(element("span", "tag warn", "guard"));
    if (row[STATE] === "open") made.appendChild(element("span", "tag", "no result"));
    made.appendChild(element("span", "about", about(row)));
    made.appendChild(element("span", "took", took(row[TOOK])));
    return made;
  }
  function pick(index, quiet) {
    if (!shown.length) return;
    picked = Math.max(0, Math.min(shown.length - 1, index));
    var top = picked * HEIGHT;
    if (top < list.scrollTop) list.scrollTop = top;
    if (top + HEIGHT > list.scrollTop + list.clientHeight) list.scrollTop = top + HEIGHT - list.clientHeight;
    draw();
    list.setAttribute("aria-activedescendant", "row-" + picked);
    look(shown[picked], quiet);
  }
  function block(title, text, cut) {
    if (text === null || text === undefined || text === "") return;
    var value = text;
    if (!cut && /^[\[{"]/.test(text)) try { value = pretty(JSON.parse(text)); } catch (problem) { /* text that looks like JSON */ }
    detail.appendChild(element("h4", "", title + (cut ? " (cut: " + cut + " characters in the record)" : "")));
    detail.appendChild(element("pre", "", value));
  }
  // Long texts inside a value are what one wants to read: a command or a file's content is printed as such.
  function pretty(value) {
    if (typeof value === "string") return value;
    if (value && typeof value === "object" && !Array.isArray(value)) {
      var keys = Object.keys(value);
      if (keys.length && keys.every(function (key) { return value[key] === null || typeof value[key] !== "object"; }))
        return keys.map(function (key) { var one = value[key]; return key + ": " + (typeof one === "string" && one.indexOf("\n") >= 0 ? "\n" + one : one); }).join("\n");
    }
    return JSON.stringify(value, null, 2);
  }
  function look(row, quiet) {
    detail.replaceChildren();
    if (!quiet) detail.classList.add("open");
    var close = element("button", "close", "Back to the list");
    close.addEventListener("click", function () { detail.classList.remove("open"); list.focus(); });
    detail.appendChild(close);
    detail.appendChild(element("h3", "", (row[NUMBER] ? "#" + row[NUMBER] + " " : "") + row[NAME]));
    var facts = [row[KIND] === "s" ? row[TYPE].replace(/_/g, " ") : "", row[AT], took(row[TOOK])].concat(row[FACTS] || []).filter(Boolean);
    detail.appendChild(element("p", "soft", facts.join(" \u00b7 ")));
    if (row[STATE] === "blocked") detail.appendChild(element("p", "bad", "This call was blocked."));
    (row[NOTES] || []).forEach(function (note) { detail.appendChild(element("p", "warn", note)); });
    var cut = row[CUT] || [];
    block("Error", row[ERROR], cut[2]);
    if (row[CHOICE]) { block("Decided by " + row[CHOICE][2], row[CHOICE][0]); block("Because", row[CHOICE][1]); }
    block(row[KIND] === "s" ? "Input" : "Text", row[INPUT], cut[0]);
    block("Output", row[OUTPUT], cut[1]);
    if (!quiet && row[NUMBER]) history.replaceState(null, "", "#step-" + row[NUMBER]);
  }
  function jump(number) {
    filter = "all"; words = ""; search.value = ""; press(); narrow();
    for (var i = 0; i < shown.length; i++) if (shown[i][NUMBER] === number) { pick(i); list.scrollIntoView({ block: "nearest" }); list.focus({ preventScroll: true }); return; }
  }
  function next(step) {
    for (var i = picked + step; i >= 0 && i < shown.length; i += step) if (shown[i][STATE] === "blocked" || shown[i][STATE] === "error") return pick(i);
  }
  function press() {
    document.querySelectorAll("button[data-filter]").forEach(function (one) { one.setAttribute("aria-pressed", one.dataset.filter === filter ? "true" : "false"); });
    document.querySelectorAll("button[data-trace]").forEach(function (one) { one.setAttribute("aria-pressed", +one.dataset.trace === which ? "true" : "false"); });
  }
  function open(index) { which = index; rows = data[which]; picked = -1; list.scrollTop = 0; press(); narrow(); if (rows.length) pick(0, true); }
  var waiting = 0;
  search.addEventListener("input", function () { clearTimeout(waiting); waiting = setTimeout(function () { words = search.value.trim().toLowerCase(); list.scrollTop = 0; narrow(); }, 120); });
  list.addEventListener("scroll", draw);
  window.addEventListener("resize", draw);
  box.addEventListener("click", function (event) { var row = event.target.closest(".row"); if (row) pick(+row.dataset.index); });
  document.querySelectorAll("button[data-filter]").forEach(function (one) { one.addEventListener("click", function () { filter = one.dataset.filter; list.scrollTop = 0; press(); narrow(); }); });
  document.querySelectorAll("button[data-trace]").forEach(function (one) { one.addEventListener("click", function () { open(+one.dataset.trace); }); });
  document.addEventListener("click", function (event) {
    var link = event.target.closest("a[data-step]");
    if (!link) return;
    event.preventDefault();
    if (link.dataset.of !== undefined && +link.dataset.of !== which) open(+link.dataset.of);
    jump(+link.dataset.step);
  });
  document.addEventListener("keydown", function (event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target === search) { if (event.key === "Escape" || event.key === "Enter" || event.key === "ArrowDown") { event.preventDefault(); search.blur(); list.focus(); if (picked < 0) pick(0, true); } return; }
    var page = Math.max(1, Math.floor(list.clientHeight / HEIGHT) - 1), to = { ArrowDown: picked + 1, j: picked + 1, ArrowUp: picked - 1, k: picked - 1, PageDown: picked + page, PageUp: picked - page, Home: 0, End: shown.length - 1 }[event.key];
    var inside = list === document.activeElement || document.activeElement === document.body || event.key === "j" || event.key === "k";
    if (to !== undefined && inside) { event.preventDefault(); pick(to, !detail.classList.contains("open")); }
    else if (event.key === "/") { event.preventDefault(); search.focus(); search.select(); }
    else if (event.key === "n") next(1);
    else if (event.key === "p") next(-1);
    else if (event.key === "Enter" && inside && picked >= 0) look(shown[picked]);
    else if (event.key === "Escape") { detail.classList.remove("open"); list.focus(); }
  });
  document.getElementById("timeline").hidden = false;
  open(0);
  var hash = /^#step-(\d{1,9})$/.exec(location.hash);
  if (hash) jump(+hash[1]);
})();
"""
