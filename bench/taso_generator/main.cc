#include <cstdio>
#include <fstream>
#include <memory>

#include "generator.h"
#include "rule_text.h"

int main(int argc, char** argv) {
  using namespace taso_generator;
  if (argc != 2) {
    std::fprintf(stderr, "usage: taso_generator OUT.json\n");
    return 1;
  }
  const auto generator = std::make_unique<Generator>();
  generator->walk();
  const std::vector<Rule> rules = generator->rules();
  std::printf("%zu graphs, %zu fingerprints, %zu rules\n", generator->graph_count(), generator->fingerprint_count(),
              rules.size());
  std::ofstream out(argv[1]);
  write(rules, generator->known_operators(), out);
  if (out.flush()) return 0;
  std::fprintf(stderr, "%s cannot be written\n", argv[1]);
  return 1;
}
