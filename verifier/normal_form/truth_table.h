// Forms that are made of comparisons alone: a few numbers, one for each way in which the comparisons may come out.
// Whatever is asked of such numbers (a maximum, whether one is 0) is again such a form, in one way.
#pragma once

#include <functional>
#include <optional>

#include "normal_form.h"

namespace gopt::verifier {

// The form whose value is `function` of the values of the given ones, where all are made of comparisons, few together.
std::optional<NormalForm> by_truth_table(const std::vector<const NormalForm*>& forms,
                                         const std::function<Rational(const std::vector<Rational>&)>& function);

// Whether the form is made of comparisons and is 1 or 0 however they come out.
bool is_indicator(const NormalForm& form);

}  // namespace gopt::verifier
