//===- PlanReadProgram.cpp - Functions and programs of plan.json ----------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/plan/PlanReader.h"

namespace accel::plan {

using nlohmann::json;

namespace {
/// "%12"; -1 if it is something else.
int slotNumber(const std::string &text) {
  if (text.size() < 2 || text.size() > 10 || text[0] != '%')
    return -1;
  int64_t number = 0;
  for (size_t i = 1; i < text.size(); ++i) {
    if (text[i] < '0' || text[i] > '9')
      return -1;
    number = number * 10 + (text[i] - '0');
  }
  return number;
}

template <typename Enum>
Enum oneOf(const Node &node, const char *what,
           std::initializer_list<Enum> all) {
  for (Enum value : all)
    if (node.string() == toString(value))
      return value;
  node.fail(std::string("unknown ") + what + " '" + node.string() + "'");
}
} // namespace

Arg PlanReader::arg(const Node &node) const {
  Arg arg;
  const json &value = node.value;
  auto slot = [](const Node &n) {
    int result = slotNumber(n.string());
    if (result < 0)
      n.fail("expected a slot such as \"%3\", not " + n.shown());
    return result;
  };
  if (value.is_null()) {
    arg.kind = Arg::Kind::None;
  } else if (value.is_boolean()) {
    arg.kind = Arg::Kind::Bool;
    arg.intValue = value.get<bool>();
  } else if (value.is_number_integer()) {
    arg.kind = Arg::Kind::Int;
    arg.intValue = node.integer(INT64_MIN, INT64_MAX);
  } else if (value.is_number()) {
    arg.kind = Arg::Kind::Float;
    arg.floatValue = node.real();
  } else if (value.is_string()) {
    const std::string &text = node.string();
    if (text == "inf" || text == "-inf" || text == "nan") {
      arg.kind = Arg::Kind::Float;
      arg.floatValue = text == "nan" ? std::numeric_limits<double>::quiet_NaN()
                                     : std::numeric_limits<double>::infinity();
      if (text[0] == '-')
        arg.floatValue = -arg.floatValue;
    } else {
      arg.kind = Arg::Kind::Tensor;
      arg.slot = slot(node);
    }
  } else if (value.is_array()) {
    bool tensors = false, bools = false;
    for (const json &item : value) {
      tensors |= item.is_string();
      bools |= item.is_boolean();
    }
    arg.kind = tensors ? Arg::Kind::Tensors
               : bools ? Arg::Kind::Bools
                       : Arg::Kind::Ints;
    node.items([&](const Node &n) {
      if (tensors)
        arg.ints.push_back(n.value.is_null() ? -1 : slot(n));
      else if (bools)
        arg.ints.push_back(n.boolean());
      else
        arg.ints.push_back(n.integer(INT64_MIN, INT64_MAX));
    });
  } else {
    Fields fields(node);
    bool known = fields.optional("dtype", [&](const Node &n) {
      arg.kind = Arg::Kind::Type;
      arg.dtype = dtype(n);
    }) || fields.optional("scalar", [&](const Node &n) {
      arg.kind = Arg::Kind::Wrapped;
      arg.floatValue = n.real();
    }) || fields.optional("tensors", [&](const Node &n) {
      arg.kind = Arg::Kind::Tensors;
      arg.ints = n.integers(-1, -1);
    }) || fields.optional("key", [&](const Node &n) {
      arg.kind = Arg::Kind::Key;
      arg.intValue = n.integer(0, INT64_MAX);
    }) || fields.optional("text", [&](const Node &n) {
      arg.kind = Arg::Kind::Text;
      arg.text = n.string();
    }) || fields.optional("bools", [&](const Node &n) {
      arg.kind = Arg::Kind::Bools;
      if (!n.integers(0, 0).empty())
        n.fail("expected an empty list");
    });
    if (!known)
      node.fail("unknown kind of argument");
    fields.close();
  }
  return arg;
}

void PlanReader::instruction(const Node &node, Instruction &instruction) {
  Fields fields(node);
  Node kind = fields["kind"];
  if (kind.string() == "opaque")
    instruction.kind = Instruction::Kind::Opaque;
  else if (kind.string() != "aten")
    kind.fail("unknown kind of instruction '" + kind.string() +
              "'; this version knows 'aten' and 'opaque'");
  instruction.op = fields["op"].string();
  fields["args"].items(
      [&](const Node &n) { instruction.args.push_back(arg(n)); });
  fields.optional("results",
                  [&](const Node &n) { instruction.results = n.indices(-1); });
  fields.optional("frees",
                  [&](const Node &n) { instruction.frees = n.indices(); });
  fields.optional("workspace", [&](const Node &n) {
    instruction.workspaceBytes = n.integer(0, maxSize);
  });
  fields.optional("flops",
                  [&](const Node &n) { instruction.flops = n.real(0); });
  fields.optional("moved_bytes",
                  [&](const Node &n) { instruction.movedBytes = n.real(0); });
  fields.optional("where",
                  [&](const Node &n) { instruction.where = n.string(); });
  fields.close();
}

std::string PlanReader::function(const Node &node, Function &function) {
  Fields fields(node);
  function.name = fields["name"].string();
  fields["slots"].items([&](const Node &n) {
    Slot &slot = function.slots.emplace_back();
    slot.base = function.slots.size() - 1;
    type(n, slot.dtype, slot.shape, &slot.base);
  });
  function.inputs = fields["inputs"].indices();
  auto pairs = [&](const char *key, std::vector<int> &slots,
                   std::vector<std::string> &names) {
    fields[key].items([&](const Node &n) {
      size_t at = 0;
      n.items([&](const Node &item) {
        if (at == 0)
          slots.push_back(item.integer(0, maxInt));
        else if (at == 1)
          names.push_back(item.string());
        ++at;
      });
      if (at != 2)
        n.fail("expected [slot, name]");
    });
  };
  pairs("params", function.params, function.paramNames);
  pairs("gradients", function.gradients, function.gradientNames);
  function.outputs = fields["outputs"].indices();
  fields["instructions"].items([&](const Node &n) {
    instruction(n, function.instructions.emplace_back());
  });
  fields.close();
  return function.name;
}

void PlanReader::step(const Node &node, Step &step) {
  Fields fields(node);
  step.kind =
      oneOf(fields["kind"], "kind of step",
            {StepKind::Alloc, StepKind::Free, StepKind::AllGather,
             StepKind::ReduceScatter, StepKind::AllReduce, StepKind::Await,
             StepKind::Call, StepKind::GradNorm, StepKind::Optimizer});
  step.stream = defaultStream(step.kind);
  step.role = defaultRole(step.kind);
  fields.optional("stream", [&](const Node &n) {
    step.stream =
        oneOf(n, "stream", {Stream::Compute, Stream::Gather, Stream::Reduce});
  });
  fields.optional("unit",
                  [&](const Node &n) { step.unit = lookup(units, n, "unit"); });
  fields.optional("role", [&](const Node &n) {
    step.role = oneOf(
        n, "role",
        {Role::Gathered, Role::Gradient, Role::Receive, Role::ShardGradient});
  });
  fields.optional("timepoint", [&](const Node &n) {
    step.timepoint = n.integer(0, maxInt);
  });
  fields.optional("accumulate",
                  [&](const Node &n) { step.accumulate = n.boolean(); });
  fields.optional("axes", [&](const Node &n) { step.axes = n.strings(); });
  fields.optional("algorithm",
                  [&](const Node &n) { step.algorithm = n.string(); });
  fields.optional("function", [&](const Node &n) {
    step.function = lookup(functions, n, "function");
  });
  fields.optional("inputs", [&](const Node &n) { step.inputs = n.indices(); });
  step.consumed.resize(step.inputs.size());
  fields.optional("consumed", [&](const Node &n) {
    n.items([&](const Node &item) {
      step.consumed[item.integer(0, int64_t(step.inputs.size()) - 1)] = true;
    });
  });
  auto refs = [&](const Node &n, auto each) {
    n.items([&](const Node &item) {
      Fields ref(item);
      int unit = lookup(units, ref["unit"], "unit");
      bool accumulate = false;
      ref.optional("accumulate",
                   [&](const Node &a) { accumulate = a.boolean(); });
      ref["fqn"].items([&](const Node &name) {
        each(unit, lookup(parameters, name, "parameter"), accumulate);
      });
      ref.close();
    });
  };
  fields.optional("params", [&](const Node &n) {
    refs(n, [&](int unit, int parameter, bool accumulate) {
      if (accumulate)
        n.fail("a parameter that is read cannot accumulate");
      step.params.push_back({unit, parameter});
    });
  });
  fields.optional("gradients", [&](const Node &n) {
    refs(n, [&](int unit, int parameter, bool accumulate) {
      step.gradients.push_back({unit, parameter, accumulate});
    });
  });
  fields.optional("outputs",
                  [&](const Node &n) { step.outputs = n.indices(-1); });
  fields.optional("draw",
                  [&](const Node &n) { step.draw = n.integer(0, maxInt); });
  fields.optional("values", [&](const Node &n) { step.values = n.indices(); });
  if (!fields.optional("where",
                       [&](const Node &n) { step.where = n.string(); }) &&
      step.unit >= 0)
    step.where = plan.units[step.unit].name;
  fields.close();
}

std::string PlanReader::program(const Node &node, Program &program) {
  Fields fields(node);
  program.name = fields["name"].string();
  program.inputs = fields["inputs"].indices();
  fields.optional("loss",
                  [&](const Node &n) { program.loss = n.integer(0, maxInt); });
  program.peakBytes = fields["peak_bytes"].integer(0, INT64_MAX);
  program.peakStep = fields["peak_step"].integer(-1, maxInt);
  fields["values"].items([&](const Node &n) {
    Fields each(n);
    Value &value = program.values.emplace_back();
    value.name = each["name"].string();
    type(each["type"], value.dtype, value.shape, nullptr);
    each.optional("alias",
                  [&](const Node &a) { value.alias = a.integer(0, maxInt); });
    value.bytes = defaultBytes(value);
    each.optional("bytes",
                  [&](const Node &b) { value.bytes = b.integer(0, maxSize); });
    each.close();
  });
  fields["steps"].items(
      [&](const Node &n) { step(n, program.steps.emplace_back()); });
  fields.close();
  return program.name;
}

} // namespace accel::plan
