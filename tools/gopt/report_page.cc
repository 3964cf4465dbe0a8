#include "report_page.h"

#include "report_json.h"

namespace gopt::cli {

std::string_view page_text(std::string_view file);  // made from page/ by embed.cmake

namespace {

constexpr std::string_view kScripts[] = {"elements.js", "layout.js", "graph_view.js", "details.js", "rewrites.js",
                                         "charts.js",   "plans.js",  "tables.js",     "main.js"};

// JSON within a script element: no `<` is left that could end it, nor what could begin a comment.
std::string embedded(const nlohmann::json& report) {
  std::string text;
  for (char c : json_text(report, -1))
    if (c == '<')
      text += "\\u003c";
    else
      text += c;
  return text;
}

}  // namespace

std::string report_page(const nlohmann::json& report) {
  std::string page;
  page += "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n";
  page += "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n";
  page += "<title>gopt report</title>\n<style>\n";
  page += page_text("style.css");
  page += "</style>\n</head>\n<body>\n";
  page += page_text("body.html");
  page +=
      "<script type=\"application/json\" id=\"report\">" + embedded(report) + "</script>\n<script>\n\"use strict\";\n";
  for (std::string_view script : kScripts) page += page_text(script);
  return page + "</script>\n</body>\n</html>\n";
}

}  // namespace gopt::cli
