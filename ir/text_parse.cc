#include "gopt/text.h"
#include "gopt/text_reader.h"

namespace gopt {
namespace {

class GraphParser {
 public:
  GraphParser(std::string_view text, const std::map<std::string, Tensor>& weights) : reader_(text), weights_(weights) {}

  Graph parse() {
    reader_.skip_blank_lines();
    reader_.expect("graph");
    builder_.metadata().name = reader_.name();
    reader_.end_line();
    while (true) {
      reader_.skip_blank_lines();
      if (reader_.accept("end")) break;
      if (reader_.at_end()) reader_.fail("expected 'end'");
      statement();
      reader_.end_line();
    }
    if (!reader_.at_end()) reader_.fail("expected nothing after 'end'");
    if (outputs_ == 0) reader_.fail("the graph has no output");
    return builder_.build();
  }

 private:
  void bind(const std::string& name, const Value& value) {
    if (!values_.emplace(name, value).second) reader_.fail("'" + name + "' is defined twice");
  }

  void statement() {
    if (reader_.accept("input")) {
      const std::string name = reader_.name();
      reader_.expect(":");
      return bind(name, builder_.input(name, reader_.type()));
    }
    if (reader_.accept("constant")) {
      const std::string name = reader_.name();
      reader_.expect("=");
      return bind(name, builder_.constant(reader_.tensor(), name));
    }
    if (reader_.accept("weight")) return weight();
    if (reader_.accept("output")) {
      const std::string name = reader_.name();
      reader_.expect("=");
      outputs_++;
      return builder_.output(name, reader_.value(values_));
    }
    reader_.node_line(builder_, values_);
  }

  void weight() {
    const std::string name = reader_.name();
    reader_.expect(":");
    const TensorType type = reader_.type();
    auto it = weights_.find(name);
    if (it == weights_.end()) reader_.fail("weight '" + name + "' has no data: text alone does not hold large tensors");
    if (it->second.tensor_type() != type)
      reader_.fail("weight '" + name + "' is " + to_string(it->second.tensor_type()) + ", the text says " +
                   to_string(type));
    bind(name, builder_.constant(it->second, name));
  }

  TextReader reader_;
  const std::map<std::string, Tensor>& weights_;
  GraphBuilder builder_;
  std::map<std::string, Value> values_;
  int outputs_ = 0;
};

}  // namespace

Result<Graph> parse_graph(std::string_view text, const std::map<std::string, Tensor>& weights) {
  try {
    return GraphParser(text, weights).parse();
  } catch (const TextError& e) {
    return Error{e.what()};
  }
}

}  // namespace gopt
