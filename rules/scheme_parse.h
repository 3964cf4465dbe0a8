// The lines of a rule's stanza that speak of lists of axes. rule_parse.cc reads the stanza and calls this where lists
// are declared.
#pragma once

#include <set>
#include <string>

#include "gopt/scheme.h"
#include "gopt/text_reader.h"

namespace gopt::rules {

class SchemeReader {
 public:
  SchemeReader(TextReader& reader, Scheme& scheme) : reader_(reader), scheme_(scheme) {}

  // Each after its keyword; all but a side stop before the line's end.
  void lists();                       // "A B"
  void symbols(AxisSymbolKind kind);  // "s e of A"
  void variable();                    // "x f32[A..., n]"
  SchemeSide side();                  // up to "return y"
  void condition();                   // "s <= e"

 private:
  void declare(const std::string& name);
  SchemeItem item();
  SchemeItems items();
  SchemeNode node(std::set<std::string>& defined);
  SchemeNode constant(std::set<std::string>& defined);
  void attributes(SchemeNode& node);
  std::string domain_of(const std::set<AtomId>& symbols);

  TextReader& reader_;
  Scheme& scheme_;
};

}  // namespace gopt::rules
