// Phase two of a level: what was emitted becomes representatives and applications that are equal to one.
#include <algorithm>

#include "enumerate.h"

namespace gopt::generator {
namespace {

constexpr int kKeptOps = 1;  // values of representatives of so many operators are kept

NameMap inverse(const NameMap& map) {
  NameMap result = NameMap::nothing();
  for (size_t c = 0; c < kMaxClasses; c++)
    for (unsigned k = 0; k < kMaxVariables; k++)
      if (const unsigned to = nibble(map.of_class[c], k); to < kMaxVariables)
        result.of_class[c] = with_nibble(result.of_class[c], to, k);
  return result;
}

// `first`, then `second` for what that names; a variable that `second` lacks keeps the name.
NameMap then(const NameMap& first, const NameMap& second) {
  NameMap result = first;
  for (size_t c = 0; c < kMaxClasses; c++)
    for (unsigned k = 0; k < kMaxVariables; k++) {
      const unsigned middle = nibble(first.of_class[c], k);
      if (middle >= kMaxVariables) continue;
      const unsigned to = nibble(second.of_class[c], middle);
      result.of_class[c] = with_nibble(result.of_class[c], k, to < kMaxVariables ? to : middle);
    }
  return result;
}

}  // namespace

Representative Enumerator::representative_of(const Record& record) {
  Representative rep;
  rep.application = record.application;
  const Output& output = outputs_[record.output];
  rep.kernel = output.kernel;
  rep.type = output.kernel->type;
  rep.size = output.size;
  rep.signature = space_.intern_signature(space_.classes_of(record.application));
  for (size_t i = 0; i < record.application.arity; i++) {
    const Representative& arg = space_.rep(record.application.args[i].rep);
    rep.is_weight = rep.is_weight && arg.is_weight;
    rep.is_open = rep.is_open || arg.is_open;
  }
  const Signature& signature = space_.signature(rep.signature);
  for (size_t p = 1; p < signature.permutations.size() && p < 32; p++) {
    if (!(record.symmetries >> p & 1)) continue;
    const Naming naming = signature.renamed(signature.identity, signature.permutations[p]);
    LocalPermutation symmetry{};
    for (unsigned i = 0; i < signature.count; i++)
      for (unsigned j = 0; j < signature.count; j++)
        if (signature.classes[i] == signature.classes[j] && nibble(signature.identity, j) == nibble(naming, i))
          symmetry[i] = static_cast<uint8_t>(j);
    rep.symmetries.push_back(symmetry);
  }
  return rep;
}

void Enumerator::compute_images(Representative& rep, const Record& record, Evaluator& evaluator,
                                std::vector<Image>& images) const {
  const Signature& signature = space_.signature(rep.signature);
  const bool is_kept = rep.total_ops() <= kKeptOps;
  if (is_kept) rep.images.resize(space_.image_count(signature));
  // The representative is not in the space yet, so its arguments are named here.
  std::vector<Naming> namings{0};
  for (unsigned i = 0; i < signature.count; i++) {
    std::vector<Naming> longer;
    for (Naming naming : namings)
      for (unsigned number = 0; number < space_.pool(signature.classes[i]); number++) {
        bool is_taken = false;
        for (unsigned j = 0; j < i; j++)
          is_taken |= signature.classes[j] == signature.classes[i] && nibble(naming, j) == number;
        if (!is_taken) longer.push_back(with_nibble(naming, i, number));
      }
    namings = std::move(longer);
  }
  for (Naming naming : namings) {
    evaluator.reset();
    const NameMap map = signature.map_of(naming);
    std::array<Named, kMaxArguments> args{};
    for (size_t i = 0; i < rep.application.arity; i++) args[i] = space_.renamed(rep.application.args[i], map);
    const Scalar* value = evaluator.apply(*rep.kernel, rep.size, args.data(), rep.application.arity);
    if (!value) continue;
    images.push_back({naming, space_.fingerprint(outputs_[record.output].type_key, value, rep.size)});
    if (is_kept) rep.images[space_.image_number(signature, naming)].assign(value, value + rep.size);
  }
}

// Images that each rank has computed of its classes, to all.
void Enumerator::exchange_images(size_t count, std::vector<std::vector<Image>>& images) const {
  struct Row {
    uint32_t item;
    Image image;
  };
  std::vector<Row> rows;
  for (size_t item = 0; item < count; item++)
    if (team_.owns(item))
      for (const Image& image : images[item]) rows.push_back({static_cast<uint32_t>(item), image});
  for (const Row& row : gathered(team_.ranks, std::move(rows)))
    if (!team_.owns(row.item)) images[row.item].push_back(row.image);
}

void Enumerator::add_class(const Record* begin, const Record* end, const std::vector<Image>& images, Representative rep,
                           Level& level) {
  const uint32_t id = space_.rep_count();
  const Signature& signature = space_.signature(rep.signature);
  const NameMap to_least = signature.permutations[begin->permutation];
  Named first{id, signature.identity};
  const bool final = rep.is_final;
  // A class with fewer variables may have come just before.
  const Named* known = nullptr;
  if (final) known = space_.table().find(begin->least);
  if (!final)
    for (const auto& [naming, fingerprint] : images)
      if (naming == signature.identity) known = space_.table().find(fingerprint);
  if (known && !final) first = *known;
  if (known && final) first = space_.renamed(*known, inverse(to_least));
  if (!known) {
    if (final) {
      space_.table().insert(begin->least, {id, signature.renamed(signature.identity, to_least)});
    } else {
      for (const auto& [naming, fingerprint] : images) space_.table().insert(fingerprint, {id, naming});
    }
    space_.add(std::move(rep));
    if (!final) add_to_group(id);
    level.representatives.push_back(id);
    add_symmetries(*begin, id, level);
  } else {
    level.equal.push_back({begin->application, first});
  }
  for (const Record* record = begin + 1; record < end; record++) {
    // first under to_least = record under its own permutation
    const Signature& theirs = space_.signature(space_.intern_signature(space_.classes_of(record->application)));
    const NameMap map = then(to_least, inverse(theirs.permutations[record->permutation]));
    level.equal.push_back({record->application, space_.renamed(first, map)});
  }
}

// Exchanges of variables that change nothing, other than those that commuting and arguments' own explain:
// (x+y)+z = (x+z)+y.
void Enumerator::add_symmetries(const Record& record, uint32_t id, Level& level) {
  if (record.symmetries == 0) return;
  const Application& application = record.application;
  std::vector<NameMap> plain;
  space_.normalized(application.op, application.output, application.args.data(), application.arity, &plain);
  const Signature& signature = space_.signature_of(id);
  for (size_t p = 1; p < signature.permutations.size() && p < 32; p++) {
    const Naming naming = signature.renamed(signature.identity, signature.permutations[p]);
    const bool is_plain = std::any_of(plain.begin(), plain.end(), [&](const NameMap& map) {
      return signature.renamed(signature.identity, map) == naming;
    });
    if (record.symmetries >> p & 1 && !is_plain) level.equal.push_back({application, {id, naming}});
  }
}

void Enumerator::add_classes(std::vector<Record>& records, Level& level, int activation_ops, int weight_ops) {
  std::sort(records.begin(), records.end(), [](const Record& a, const Record& b) {
    return a.least != b.least ? a.least < b.least : a.application < b.application;
  });
  struct Class {
    const Record *begin, *end;
    int variables;
  };
  std::vector<Class> classes;
  for (size_t i = 0; i < records.size();) {
    size_t end = i + 1;
    while (end < records.size() && records[end].least == records[i].least) end++;
    classes.push_back(
        {&records[i], records.data() + end, static_cast<int>(space_.classes_of(records[i].application).size())});
    i = end;
  }
  std::sort(classes.begin(), classes.end(), [](const Class& a, const Class& b) {
    return a.variables != b.variables ? a.variables < b.variables : a.begin->application < b.begin->application;
  });
  const bool final = is_final(activation_ops);
  constexpr size_t kAtOnce = 4096;
  std::vector<Representative> reps(kAtOnce);
  std::vector<std::vector<Image>> images(kAtOnce);
  std::vector<Evaluator> evaluators(static_cast<size_t>(team_.threads), Evaluator(space_));
  // Values that are kept are needed everywhere.
  const bool is_split = team_.rank_count() > 1 && activation_ops + weight_ops > kKeptOps;
  for (size_t start = 0; start < classes.size(); start += kAtOnce) {
    const size_t count = std::min(kAtOnce, classes.size() - start);
    for (size_t i = 0; i < count; i++) {
      reps[i] = representative_of(*classes[start + i].begin);
      reps[i].activation_ops = static_cast<uint8_t>(activation_ops);
      reps[i].weight_ops = static_cast<uint8_t>(weight_ops);
      reps[i].is_final = final;
      images[i].clear();
    }
    const auto compute = [&](int thread, size_t i) {
      compute_images(reps[i], *classes[start + i].begin, evaluators[static_cast<size_t>(thread)], images[i]);
    };
    if (!final && is_split) {
      team_.for_own(count, compute);
      exchange_images(count, images);
    } else if (!final) {
      parallel_for(team_.threads, count, compute);
    }
    for (size_t i = 0; i < count; i++)
      add_class(classes[start + i].begin, classes[start + i].end, images[i], std::move(reps[i]), level);
  }
}

}  // namespace gopt::generator
