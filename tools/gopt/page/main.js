// What goes wrong is shown, and can be seen from without.
function failed(message) {
  document.documentElement.dataset.error = message;
  byId("notes").append(make("div", { class: "note bad" }, "This page failed: " + message));
}
addEventListener("error", (event) => failed(event.message));

function setTheme(isDark) { document.documentElement.classList.toggle("dark", isDark); }

function start() {
  setTheme(matchMedia("(prefers-color-scheme: dark)").matches);
  byId("theme").addEventListener("click", () => setTheme(!document.documentElement.classList.contains("dark")));
  const report = JSON.parse(byId("report").textContent), graphs = new Graphs(report), steps = rewriteSteps(report).length;
  summary(report);
  section("graphs", "Graphs", "before and after", () => graphs.section());
  section("rewrites", "Rewrites", steps ? `${plural(steps, "step")}, ${plural(report.applied.length, "place")}` : "none", () => rewriteList(report, graphs));
  section("search", "Search", `${report.search.stop_reason} after ${secondText(report.search.seconds)}`, () => searchSection(report));
  section("kernels", "Kernels", "on their roofline", () => kernelsSection(report, graphs));
  section("memory", "Memory", "over the kernels", () => memorySection(report, graphs));
  section("accuracy", "Accuracy", "of each output", () => accuracySection(report));
  section("operators", "Operators", "before and after", () => operatorsSection(report));
  section("seconds", "Seconds", "of this run", () => secondsSection(report));
  document.documentElement.dataset.ready = "yes";
}
start();
