// What PyTorch's C++ autograd does, rule by rule (group V): one line of JSON per rule, each a table of what was found.
// Group V's contracts compile it against the installed PyTorch, run it once, and expect of it what they expect of xpgrad's dialect.

#include <ATen/TensorOperators.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <torch/csrc/autograd/autograd.h>

#include <iostream>
#include <sstream>
#include <string>
#include <vector>

using at::Tensor;
using torch::autograd::backward;
using torch::autograd::grad;

namespace {

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '\n') break;  // the first line is the message, what follows it is a stack trace
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) >= 0x20) out += c;
  }
  return out + "\"";
}

std::string list(at::IntArrayRef numbers) {
  std::ostringstream out;
  for (size_t i = 0; i < numbers.size(); ++i) out << (i ? ", " : "") << numbers[i];
  return "[" + out.str() + "]";
}

// A Tensor as its elements in a flat list, the undefined one as null.
std::string json(const Tensor& t) {
  if (!t.defined()) return "null";
  Tensor flat = t.detach().to(at::kDouble).contiguous().view({-1});
  std::ostringstream out;
  for (int64_t i = 0; i < flat.numel(); ++i) out << (i ? ", " : "") << flat[i].item<double>();
  return "[" + out.str() + "]";
}

std::string json(bool b) { return b ? "true" : "false"; }

// What a call says if it raises a c10::Error, null if it raises nothing.
template <class F>
std::string said(F f) {
  try {
    f();
  } catch (const c10::Error& e) {
    return quoted(e.what_without_backtrace());
  } catch (const std::exception& e) {
    return quoted(std::string("no c10::Error but: ") + e.what());
  }
  return "null";
}

// The line of one rule, printed when all its facts are there.
class Rule {
 public:
  explicit Rule(const std::string& id) : line_("{\"id\": \"" + id + "\"") {}
  Rule& fact(const std::string& name, const std::string& value) {
    line_ += ", \"" + name + "\": " + value;
    return *this;
  }
  ~Rule() { std::cout << line_ << "}" << std::endl; }

 private:
  std::string line_;
};

Tensor constant(std::vector<double> values) { return at::tensor(at::ArrayRef<double>(values), at::kDouble); }
Tensor leaf(std::vector<double> values) { return constant(std::move(values)).set_requires_grad(true); }
Tensor ones(at::IntArrayRef shape) { return at::ones(shape, at::kDouble); }

void signature() {
  Rule rule("CPP-01");
  Tensor x = leaf({2.0});
  backward({x * x});
  rule.fact("tensors", json(x.grad()));
  backward({x * x}, {Tensor()});
  rule.fact("undefined", json(x.grad()));
  backward({x * x, x * x}, {Tensor(), constant({10.0})}, true, false, {x});
  rule.fact("all", json(x.grad()));
  Tensor y = x * x;
  backward({y}, {}, std::nullopt);
  rule.fact("again", said([&] { backward({y}); }));
}

void implicit() {
  Rule rule("CPP-02");
  Tensor x = leaf({1.0, 2.0}), one = leaf({3.0}).view({1, 1});
  rule.fact("many", said([&] { backward({x * x}); }));
  rule.fact("none", said([&] { backward({x.slice(0, 0, 0) * 2}, {Tensor()}); }));
  Tensor z = at::ones({}, at::kComplexDouble).set_requires_grad(true);
  rule.fact("complex", said([&] { backward({z * 2}); }));
  rule.fact("grad", said([&] { grad({x * x}, {x}); }));
  rule.fact("one", said([&] { backward({one * one}); }));
}

void lengths() {
  Rule rule("CPP-03");
  Tensor x = leaf({2.0});
  rule.fact("many", said([&] { backward({x * x}, {constant({1.0}), constant({1.0})}); }));
  rule.fact("few", said([&] { backward({x * x, x * x}, {constant({1.0})}); }));
  rule.fact("undefined", said([&] { backward({x * x}, {Tensor(), Tensor()}); }));
  rule.fact("grad", said([&] { grad({x * x}, {x}, {constant({1.0}), constant({1.0})}); }));
  rule.fact("x", json(x.grad()));
}

void constants() {
  Rule rule("CPP-04");
  Tensor x = leaf({2.0}), c = constant({1.0, 2.0});
  rule.fact("second", said([&] { backward({x * x, c}, {Tensor(), Tensor()}); }));
  rule.fact("first", said([&] { backward({c, x * x}, {Tensor(), Tensor()}); }));
  rule.fact("given", said([&] { backward({x * x, c}, {Tensor(), ones({2})}); }));
  rule.fact("grad", said([&] { grad({x * x, c}, {x}, {Tensor(), Tensor()}); }));
  rule.fact("x", json(x.grad()));
}

void expandable() {
  Rule rule("CPP-05");
  Tensor x = leaf({1.0, 2.0});
  backward({x * 2}, {ones({3, 2})});
  rule.fact("rows", json(x.grad()));
  Tensor y = leaf({1.0, 2.0});
  backward({y.view({2, 1}) * 2}, {ones({4, 2, 5})});
  rule.fact("sides", json(y.grad()));
  Tensor s = leaf({3.0});
  backward({(s * 2).squeeze()}, {constant({1.0, 2.0, 3.0})});
  rule.fact("scalar", json(s.grad()));
  rule.fact("by_grad", json(grad({x * 2}, {x}, {ones({3, 2})})[0]));
  rule.fact("other", said([&] { backward({x * 2}, {ones({3})}); }));
  rule.fact("smaller", said([&] { backward({x * 2}, {ones({1})}); }));
  rule.fact("axes", said([&] { backward({x * 2}, {ones({})}); }));
  rule.fact("transposed", said([&] { backward({x * 2}, {ones({2, 3})}); }));
}

void inputs() {
  Rule rule("CPP-06");
  Tensor x = leaf({2.0}), w = leaf({5.0});
  backward({x * w}, {}, std::nullopt, false, {});
  rule.fact("x", json(x.grad())).fact("w", json(w.grad()));
  Tensor u = leaf({2.0}), v = leaf({5.0});
  backward({u * v}, {}, std::nullopt, false, {v});
  rule.fact("left", json(u.grad())).fact("chosen", json(v.grad()));
}

void constant_inputs() {
  Rule rule("CPP-07");
  Tensor x = leaf({2.0}), c = constant({5.0});
  rule.fact("said", said([&] { backward({x * c}, {}, std::nullopt, false, {x, c}); }));
  rule.fact("x", json(x.grad()));
}

void flags() {
  Rule rule("CPP-08");
  Tensor x = leaf({3.0});
  Tensor y = x * x * x;
  backward({y});
  rule.fact("freed", said([&] { backward({y}); }));
  y = x * x * x;
  backward({y}, {}, true);
  rule.fact("retained", said([&] { backward({y}); }));
  y = x * x * x;
  Tensor g = grad({y}, {x}, {}, std::nullopt, true)[0];
  rule.fact("default", said([&] { grad({y}, {x}, {}, true); }));
  rule.fact("second", json(grad({g}, {x})[0]));
  Tensor plain = grad({x * x}, {x})[0];
  rule.fact("tracked", json(g.requires_grad())).fact("untracked", json(plain.requires_grad()));
  y = x * x * x;
  grad({y}, {x}, {}, false, true);
  rule.fact("not_retained", said([&] { backward({y}); }));
  Tensor u = leaf({3.0});
  y = u * u * u;
  backward({y}, {}, std::nullopt, true);
  rule.fact("backward_default", said([&] { grad({y}, {u}); })).fact("accumulated", json(u.grad().requires_grad()));
  u.mutable_grad().reset();
}

void gradients() {
  Rule rule("CPP-09");
  Tensor x = leaf({2.0}), w = leaf({5.0}), c = constant({5.0});
  auto found = grad({x * x}, {x});
  rule.fact("found", json(found[0])).fact("x", json(x.grad()));
  rule.fact("unused", said([&] { grad({x * x}, {x, w}); }));
  found = grad({x * x}, {x, w}, {}, std::nullopt, false, true);
  rule.fact("used", json(found[0])).fact("allowed", json(found[1]));
  rule.fact("empty", said([&] { grad({x * x}, {}); }));
  rule.fact("constant", said([&] { grad({x * x}, {x, c}); }));
  rule.fact("constant_allowed", said([&] { grad({x * x}, {x, c}, {}, std::nullopt, false, true); }));
}

void hooks() {
  Rule rule("CPP-10");
  Tensor x = leaf({2.0}), seen;
  unsigned first = x.register_hook([&](const Tensor& g) { seen = g; });
  unsigned second = x.register_hook([](const Tensor& g) { return g * 10; });
  rule.fact("indices", "[" + std::to_string(first) + ", " + std::to_string(second) + "]");
  unsigned third = x.register_hook([](const Tensor&) { return Tensor(); });
  rule.fact("third", std::to_string(third));
  backward({x * 3});
  rule.fact("seen", json(seen)).fact("replaced", json(x.grad()));
  x.remove_hook(second);
  x.mutable_grad().reset();
  backward({x * 3});
  rule.fact("removed", json(x.grad()));
  seen = Tensor();
  x.remove_hook(first);
  x.mutable_grad().reset();
  backward({x * 3});
  rule.fact("unseen", json(seen)).fact("untouched", json(x.grad()));
  rule.fact("beyond", said([&] { x.remove_hook(7); }));
  rule.fact("next", std::to_string(x.register_hook([](const Tensor&) {})));
  Tensor w = leaf({2.0});
  Tensor y = w * w;
  rule.fact("other", std::to_string(y.register_hook([](const Tensor& g) { return g * 100; })));
  backward({y});
  rule.fact("inner", json(w.grad()));
  rule.fact("constant", said([&] { constant({1.0}).register_hook([](const Tensor&) {}); }));
}

void undefined() {
  Rule rule("CPP-11");
  Tensor x = leaf({2.0}), w = leaf({3.0});
  rule.fact("before", json(x.grad())).fact("defined", json(x.grad().defined()));
  backward({x * x});
  rule.fact("after", json(x.grad())).fact("other", json(w.grad()));
}

void engine() {
  Rule rule("CPP-12");
  Tensor x = ones({3, 2}).t().detach().set_requires_grad(true);
  backward({(x * x).sum()});
  rule.fact("dense", list(x.grad().strides())).fact("value", json(x.grad()));
  Tensor s = ones({4, 6}).slice(1, 0, 6, 2).detach().set_requires_grad(true);
  backward({(s * s).sum()});
  rule.fact("sparse", list(s.grad().strides()));
}

}  // namespace

int main() {
  signature();
  implicit();
  lengths();
  constants();
  expandable();
  inputs();
  constant_inputs();
  flags();
  gradients();
  hooks();
  undefined();
  engine();
}
