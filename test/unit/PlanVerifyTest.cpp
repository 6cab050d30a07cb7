//===- PlanVerifyTest.cpp - Each way a plan can be wrong ------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/plan/Timeline.h"
#include "runtime/plan/Verify.h"
#include "test/unit/PlanFixture.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <gtest/gtest.h>
#include <map>

using namespace accel::plan;

namespace {

struct Case {
  const char *name;
  const char *expected; // part of one of the sentences
  std::function<void(Plan &)> breakIt;
  test::Size size = {};
};

ProgramInstruction &find(Plan &plan, ProgramInstructionKind kind, int unit = -1,
                         std::optional<Role> role = {},
                         const char *program = "train") {
  for (Program &p : plan.programs)
    if (p.name == program)
      for (ProgramInstruction &instruction : p.instructions)
        if (instruction.kind == kind &&
            (unit < 0 || instruction.unit == unit) &&
            (!role || instruction.role == *role))
          return instruction;
  throw std::runtime_error("no such step");
}

void erase(Plan &plan, ProgramInstruction &instruction) {
  for (Program &p : plan.programs)
    for (size_t i = 0; i < p.instructions.size(); ++i)
      if (&p.instructions[i] == &instruction) {
        p.instructions.erase(p.instructions.begin() + i);
        return;
      }
}

void repeat(Plan &plan, ProgramInstruction &instruction) {
  for (Program &p : plan.programs)
    for (size_t i = 0; i < p.instructions.size(); ++i)
      if (&p.instructions[i] == &instruction) {
        ProgramInstruction copy = instruction;
        p.instructions.insert(p.instructions.begin() + i, copy);
        return;
      }
}

ProgramInstruction &callOf(Plan &plan, const std::string &function) {
  for (Program &p : plan.programs)
    for (ProgramInstruction &instruction : p.instructions)
      if (instruction.kind == ProgramInstructionKind::Call &&
          plan.functions[instruction.function].name == function)
        return instruction;
  throw std::runtime_error("no such call");
}

/// Nothing waits for unit 1's gradients to be on the host.
void eraseAwaitOfOffload(Plan &p) {
  const int timepoint = find(p, ProgramInstructionKind::Offload, 1).timepoint;
  for (ProgramInstruction &instruction : p.programs[0].instructions)
    if (instruction.kind == ProgramInstructionKind::Await &&
        instruction.timepoint == timepoint)
      return erase(p, instruction);
}

/// Behind the first call of the step, about the value that it makes.
void copyFirstValue(Plan &p, ProgramInstructionKind kind) {
  Program &program = p.programs[0];
  const auto call =
      std::find_if(program.instructions.begin(), program.instructions.end(),
                   [](const ProgramInstruction &i) {
                     return i.kind == ProgramInstructionKind::Call;
                   });
  ProgramInstruction copy;
  copy.kind = kind;
  copy.stream = defaultStream(kind);
  copy.inputs = {call->outputs[0]};
  copy.timepoint = 1000 + static_cast<int>(kind);
  if (kind == ProgramInstructionKind::Fetch) {
    program.values.push_back(program.values[copy.inputs[0]]);
    copy.outputs = {static_cast<int>(program.values.size()) - 1};
  }
  program.instructions.insert(call + 1, copy);
}

test::Size onHost() {
  test::Size size;
  size.statesOnHost = true;
  return size;
}

test::Size whole() {
  test::Size size;
  size.whole = true;
  return size;
}

test::Size replicated() {
  test::Size size;
  size.replicas = 2;
  return size;
}

test::Size accumulated() {
  test::Size size;
  size.accumulation = 4;
  return size;
}

const Case cases[] = {
    {"AxisSize", "its size is out of range",
     [](Plan &p) { p.axes[0].size = 0; }},
    {"AxisOverflow", "its size is out of range",
     [](Plan &p) {
       p.axes[0].size = INT64_MAX;
       p.axes[1].size = INT64_MAX;
     }},
    {"UnknownAxis", "the mesh has no axis 'tp'",
     [](Plan &p) { p.units[0].shardAxes = {"tp"}; }},
    {"UnreducedAxis", "neither sharded nor replicated",
     [](Plan &p) { p.units[0].shardAxes = {}; }},
    {"SplitAndSharded", "also shards or replicates it",
     [](Plan &p) {
       p.axes.push_back({"ep", 1});
       for (int index : p.units[0].parameters)
         p.parameters[index].split = {{"ep", 0, 1}};
       p.units[0].shardAxes.push_back("ep");
     }},
    {"ParameterOverlap", "overlaps the parameter before it",
     [](Plan &p) { p.parameters[1].offset -= 64; }},
    {"ParameterBehindTheBuffer", "behind its buffer",
     [](Plan &p) { p.parameters[2].offset += 1 << 20; }},
    {"ParameterUnaligned", "not aligned",
     [](Plan &p) { p.parameters[2].offset += 1; }},
    {"ParameterTwice", "the name is used twice",
     [](Plan &p) { p.parameters[2].fqn = p.parameters[1].fqn; }},
    {"ParameterInNoUnit", "no unit lists it",
     [](Plan &p) { p.units[0].parameters.pop_back(); }},
    {"Elements", "it says", [](Plan &p) { p.units[0].numel++; }},
    {"Padding", "no multiple of 128", [](Plan &p) { p.units[0].padded += 64; }},
    {"HugeShape", "larger than any memory",
     [](Plan &p) { p.parameters[0].shape = {1 << 30, 1 << 30}; }},
    {"NegativeShape", "a size is negative",
     [](Plan &p) { p.parameters[0].shape = {-1}; }},
    {"GroupHole", "is in no range of its optimizer group",
     [](Plan &p) { p.units[1].groupRanges[0].end = 64; }},
    {"FrozenInGroup", "would update the frozen",
     [](Plan &p) { p.parameters[4].trainable = false; }},
    {"ViewOfView", "is itself a view",
     [](Plan &p) {
       Function &f = p.functions[3];
       int view = f.instructions[0].results[0];
       f.slots[f.outputs[0]].base = view;
     }},
    {"BadSlot", "there is no slot 900",
     [](Plan &p) { p.functions[0].instructions[0].args[0].slot = 900; }},
    {"UseBeforeDefinition", "before it is made",
     [](Plan &p) {
       auto &list = p.functions[1].instructions;
       std::swap(list[0], list[1]);
       std::swap(list[1], list[2]);
     }},
    {"UseAfterFree", "freed",
     [](Plan &p) {
       Function &f = p.functions[3]; // Head.eval: mm frees x
       f.instructions.back().args[1].slot = f.inputs[0];
     }},
    {"DoubleFreeInFunction", "freed already",
     [](Plan &p) {
       Function &f = p.functions[3];
       f.instructions.back().frees.push_back(f.inputs[0]);
     }},
    {"FreesAParameter", "a parameter of the caller",
     [](Plan &p) {
       Function &f = p.functions[0];
       f.instructions[0].frees.push_back(f.params[0]);
     }},
    {"LeakInFunction", "is never freed",
     [](Plan &p) {
       for (Instruction &i : p.functions[1].instructions)
         i.frees.clear();
     }},
    {"FreedOutput", "was freed by instruction",
     [](Plan &p) {
       Function &f = p.functions[0];
       f.instructions[0].frees.push_back(f.outputs[0]);
     }},
    {"UnwrittenGradientSlot", "it never writes the gradient of 'weight'",
     [](Plan &p) { p.functions.back().instructions.clear(); }},
    {"NanArgument", "not a number",
     [](Plan &p) {
       Arg arg;
       arg.kind = Arg::Kind::Wrapped;
       arg.floatValue = NAN;
       p.functions[0].instructions[0].args.push_back(arg);
     }},
    {"NegativeWorkspace", "workspace is out of range",
     [](Plan &p) { p.functions[0].instructions[0].workspaceBytes = -1; }},
    {"GatherTwice", "while a collective on it is in flight",
     [](Plan &p) { repeat(p, find(p, ProgramInstructionKind::AllGather)); }},
    {"NeverAwaited", "is never awaited",
     [](Plan &p) { erase(p, find(p, ProgramInstructionKind::Await)); }},
    {"AwaitedTwice", "is awaited twice",
     [](Plan &p) { repeat(p, find(p, ProgramInstructionKind::Await)); }},
    {"AwaitsNothing", "which nothing started",
     [](Plan &p) { find(p, ProgramInstructionKind::Await).timepoint = 999; }},
    {"NoTimepoint", "without a timepoint",
     [](Plan &p) {
       find(p, ProgramInstructionKind::AllGather).timepoint = -1;
     }},
    {"WrongStreamAwaits", "it was awaited on stream gather",
     [](Plan &p) {
       find(p, ProgramInstructionKind::Await).stream = Stream::Gather;
     }},
    {"WrongAxes", "its mesh axes are not those",
     [](Plan &p) {
       find(p, ProgramInstructionKind::AllGather).axes = {"dp_replicate"};
     }},
    {"UseAfterFreeOfUnit", "which is not allocated",
     [](Plan &p) {
       ProgramInstruction &instruction =
           find(p, ProgramInstructionKind::Alloc, 1, Role::Gathered);
       instruction.kind = ProgramInstructionKind::Free;
     }},
    {"DoubleFreeOfUnit", "which is not allocated",
     [](Plan &p) {
       repeat(p, find(p, ProgramInstructionKind::Free, 1, Role::Gathered));
     }},
    {"DoubleAlloc", "twice",
     [](Plan &p) {
       repeat(p, find(p, ProgramInstructionKind::Alloc, 1, Role::Gathered));
     }},
    {"NeverGathered", "which nothing was gathered into",
     [](Plan &p) {
       ProgramInstruction &start =
           find(p, ProgramInstructionKind::AllGather, 1);
       int timepoint = start.timepoint;
       erase(p, start);
       for (ProgramInstruction &instruction : p.programs[0].instructions)
         if (instruction.kind == ProgramInstructionKind::Await &&
             instruction.timepoint == timepoint) {
           erase(p, instruction);
           break;
         }
     }},
    {"LeftAllocated", "is still allocated at the end",
     [](Plan &p) {
       erase(p, find(p, ProgramInstructionKind::Free, 0, Role::Gathered));
     }},
    {"NoReceiveBuffer", "the receive buffer of unit",
     [](Plan &p) {
       erase(p, find(p, ProgramInstructionKind::Alloc, 1, Role::Receive));
     }},
    {"BadAlgorithm", "unknown algorithm",
     [](Plan &p) {
       find(p, ProgramInstructionKind::ReduceScatter).algorithm = "ring";
     }},
    {"GradientNotWritten", "is not written",
     [](Plan &p) { erase(p, callOf(p, "Embedding.backward")); }},
    {"GradientOverwritten", "it overwrites the gradient of",
     [](Plan &p) { repeat(p, callOf(p, "Embedding.backward")); }},
    {"AccumulatesIntoNothing", "which holds nothing yet",
     [](Plan &p) {
       find(p, ProgramInstructionKind::ReduceScatter).accumulate = true;
     }},
    {"OverwritesAReduction", "which holds an earlier reduction",
     [](Plan &p) {
       find(p, ProgramInstructionKind::ReduceScatter, 1, {}, "middle")
           .accumulate = false;
     },
     accumulated()},
    {"AccumulatesAGradientOfNothing", "accumulates into the gradient of",
     [](Plan &p) {
       callOf(p, "Embedding.backward").gradients[0].accumulate = true;
     }},
    {"NoUpdate", "is never updated",
     [](Plan &p) { erase(p, find(p, ProgramInstructionKind::Optimizer, 1)); }},
    {"FreedBeforeUpdate", "before its update",
     [](Plan &p) { erase(p, find(p, ProgramInstructionKind::Optimizer, 1)); }},
    {"UpdatedTwice", "is updated twice",
     [](Plan &p) { repeat(p, find(p, ProgramInstructionKind::Optimizer, 1)); }},
    {"UpdatedBeforeTheNorm", "before the gradient norm is known",
     [](Plan &p) { erase(p, find(p, ProgramInstructionKind::GradNorm)); }},
    {"ReplicasDiffer", "before they are all-reduced over its replicas",
     [](Plan &p) {
       ProgramInstruction &start =
           find(p, ProgramInstructionKind::AllReduce, 1);
       int timepoint = start.timepoint;
       erase(p, start);
       for (ProgramInstruction &instruction : p.programs[0].instructions)
         if (instruction.kind == ProgramInstructionKind::Await &&
             instruction.timepoint == timepoint) {
           erase(p, instruction);
           break;
         }
     },
     replicated()},
    {"NotOnTheHost", "which are not copied to the host",
     [](Plan &p) {
       ProgramInstruction &copy = find(p, ProgramInstructionKind::Offload, 1);
       copy.kind = ProgramInstructionKind::AllReduce;
     },
     onHost()},
    {"OffloadedTwice", "twice in one step",
     [](Plan &p) { repeat(p, find(p, ProgramInstructionKind::Offload, 1)); },
     onHost()},
    {"OffloadNotAwaited", "is never awaited", eraseAwaitOfOffload, onHost()},
    {"FreedInFlight", "while a collective on it is in flight",
     eraseAwaitOfOffload, onHost()},
    {"UpdatedOnTheDevice", "but the states are on the host",
     [](Plan &p) {
       find(p, ProgramInstructionKind::Optimizer, 1).stream = Stream::Compute;
     },
     onHost()},
    {"NothingToOffload", "has no gradients on the host",
     [](Plan &p) { p.offload.states = false; }, onHost()},
    {"OffloadOfAHost", "the device is the host already",
     [](Plan &p) { p.device = "cpu"; }, onHost()},
    {"ParametersWithoutStates", "with their states",
     [](Plan &p) { p.offload = {false, true, false}; }, onHost()},
    {"ValuesThatStay", "the plan keeps them on the device",
     [](Plan &p) { copyFirstValue(p, ProgramInstructionKind::Offload); },
     onHost()},
    {"CopyOfAValueNotAwaited", "while it is sent",
     [](Plan &p) {
       p.offload.activations = true;
       copyFirstValue(p, ProgramInstructionKind::Offload);
     },
     onHost()},
    {"FetchedUncopied", "which is not copied to the host",
     [](Plan &p) { copyFirstValue(p, ProgramInstructionKind::Fetch); },
     onHost()},
    {"FetchedWhileCopied", "before its copy to the host is awaited",
     [](Plan &p) {
       p.offload.activations = true;
       copyFirstValue(p, ProgramInstructionKind::Fetch);
       copyFirstValue(p, ProgramInstructionKind::Offload);
     },
     onHost()},
    {"FetchedIntoAnother", "has another storage than",
     [](Plan &p) {
       copyFirstValue(p, ProgramInstructionKind::Fetch);
       p.programs[0].values.back().bytes += 64;
     },
     onHost()},
    {"ReadBeforeItIsFetched", "before its copy from the host is awaited",
     [](Plan &p) {
       copyFirstValue(p, ProgramInstructionKind::Offload);
       copyFirstValue(p, ProgramInstructionKind::Fetch);
       Program &program = p.programs[0];
       for (ProgramInstruction &each : program.instructions)
         if (each.kind == ProgramInstructionKind::Offload &&
             !each.inputs.empty())
           each.inputs = {static_cast<int>(program.values.size()) - 1};
     },
     onHost()},
    {"BytesOnTheHost", "the recorded size on the host is",
     [](Plan &p) { p.predicted.hostBytes += 64; }, onHost()},
    {"BytesOnTheDisk", "the recorded size on the disk is",
     [](Plan &p) { p.predicted.diskBytes += 4096; }, onHost()},
    {"DiskWithoutStates", "nothing is on the disk",
     [](Plan &p) { p.offload = {.disk = {.folder = "/nvme", .buffers = 3}}; },
     onHost()},
    {"TooFewBuffersOfTheHost", "none is free to read or write beside an update",
     [](Plan &p) { p.offload.disk = {.folder = "/nvme", .buffers = 2}; },
     onHost()},
    {"DiskWithoutFolder", "the disk has no folder",
     [](Plan &p) { p.offload.disk.buffers = 3; }, onHost()},
    {"DiskBesideTheBackground", "copies to the host's memory what is on the",
     [](Plan &p) {
       p.offload.disk = {.folder = "/nvme", .buffers = 3};
       p.job.checkpoint.background = true;
     },
     onHost()},
    {"InputCount", "takes 2 inputs, not 1",
     [](Plan &p) {
       callOf(p, "Embedding.backward").inputs.pop_back();
       callOf(p, "Embedding.backward").consumed.pop_back();
     }},
    {"InputType", "the function has",
     [](Plan &p) {
       std::swap(callOf(p, "Embedding.backward").inputs[0],
                 callOf(p, "Embedding.backward").inputs[1]);
     }},
    {"ValueAfterFree", "which is freed already",
     [](Plan &p) { callOf(p, "Embedding.forward").consumed[0] = true; }},
    {"ValueNeverFreed", "is never freed",
     [](Plan &p) { callOf(p, "DecoderLayer.backward").consumed[2] = false; }},
    {"ValueTwice", "is made twice",
     [](Plan &p) {
       ProgramInstruction &instruction = callOf(p, "DecoderLayer.forward");
       instruction.outputs[2] = instruction.outputs[3];
     }},
    {"ValueBytes", "the function makes",
     [](Plan &p) { p.programs[0].values[3].bytes += 64; }},
    {"WrongAlias", "has a storage of its own but is an alias",
     [](Plan &p) {
       p.programs[0].values[4].alias = 3;
       p.programs[0].values[4].bytes = 0;
     }},
    {"AliasOfAlias", "which is an alias itself",
     [](Plan &p) {
       p.programs[0].values[4].alias = 5;
       p.programs[0].values[5].alias = 4;
     }},
    {"LossShape", "the loss is not a 0-d f32",
     [](Plan &p) { p.programs[0].loss = 0; }},
    {"MicroBatches", "the job asks for 3",
     [](Plan &p) { p.job.accumulation = 3; }},
    {"UnusedProgram", "neither the step nor the evaluation runs it",
     [](Plan &p) { p.eval = -1; }},
    {"OperatorOnFiles", "not among the operators that a plan may call",
     [](Plan &p) { p.functions[0].instructions[0].op = "aten::from_file"; }},
    {"OperatorOfOthers", "not among the operators that a plan may call",
     [](Plan &p) { p.functions[0].instructions[0].op = "prims::add"; }},
    {"TextOfNoOperator", "is not one that the operator knows",
     [](Plan &p) {
       Arg text;
       text.kind = Arg::Kind::Text;
       text.text = "tanh";
       p.functions[0].instructions[0].op = "aten::mm";
       p.functions[0].instructions[0].args.push_back(text);
     }},
    {"NotGatheredAfterTheUpdate", "which is not gathered after its update",
     [](Plan &p) {
       ProgramInstruction &gather =
           find(p, ProgramInstructionKind::AllGather, 1);
       for (Program &program : p.programs)
         for (ProgramInstruction &at : program.instructions)
           if (at.kind == ProgramInstructionKind::Await &&
               at.timepoint == gather.timepoint)
             return erase(p, at),
                    erase(p, find(p, ProgramInstructionKind::AllGather, 1));
     },
     whole()},
    {"GatheredBeforeTheUpdate", "which is not gathered after its update",
     [](Plan &p) {
       ProgramInstruction &update =
           find(p, ProgramInstructionKind::Optimizer, 1);
       std::swap(update, find(p, ProgramInstructionKind::AllGather, 1));
     },
     whole()},
    {"WholeUnitFreed", "which is not allocated",
     [](Plan &p) {
       ProgramInstruction &free =
           find(p, ProgramInstructionKind::Free, 1, Role::ShardGradient);
       free.role = Role::Gathered;
     },
     whole()},
    {"WholeUnitOfAShard", "but its shard holds everything",
     [](Plan &p) {
       p.axes[1].size = 1;
       p.units[0].shardAxes = {};
     },
     whole()},
    {"UnknownHook", "unknown hook 'fp8'",
     [](Plan &p) { p.units[1].hook = "fp8"; }},
    {"HookOfAShard", "a hook is of gradients that replicas alone reduce",
     [](Plan &p) { p.units[1].hook = "bf16"; }},
    {"PeakBytes", "the recorded peak is",
     [](Plan &p) { p.predicted.peakBytes += 64; }},
    {"ProgramPeak", "the timeline's is",
     [](Plan &p) { p.programs[0].peakBytes -= 64; }},
    {"Breakdown", "the breakdown is not the timeline's",
     [](Plan &p) {
       p.predicted.breakdown.logits += 64;
       p.predicted.breakdown.activations -= 64;
     }},
};

class VerifyCase : public ::testing::TestWithParam<Case> {};

TEST_P(VerifyCase, IsRefused) {
  Plan plan = test::makePlan(GetParam().size);
  ASSERT_EQ(verify(plan), std::vector<std::string>{});
  GetParam().breakIt(plan);
  std::vector<std::string> problems = verify(plan);
  EXPECT_TRUE(std::any_of(problems.begin(), problems.end(),
                          [](const std::string &problem) {
                            return problem.find(GetParam().expected) !=
                                   std::string::npos;
                          }))
      << (problems.empty() ? "nothing was found" : problems[0]);
}

INSTANTIATE_TEST_SUITE_P(All, VerifyCase, ::testing::ValuesIn(cases),
                         [](const auto &info) { return info.param.name; });

TEST(Verify, AcceptsEverySize) {
  for (int64_t ranks : {2, 3, 8})
    for (int64_t replicas : {1, 2})
      for (int64_t accumulation : {1, 2, 3, 9})
        for (const auto [clip, whole] :
             {std::pair{false, false}, {true, false}, {true, true}}) {
          test::Size size;
          size.whole = whole;
          size.shardRanks = ranks;
          size.replicas = replicas;
          size.accumulation = accumulation;
          size.clip = clip;
          EXPECT_EQ(verify(test::makePlan(size)), std::vector<std::string>{})
              << ranks << " x " << replicas << ", " << accumulation;
        }
}

TEST(Verify, StopsListingAtSomePoint) {
  test::Size size;
  size.layers = 100;
  Plan plan = test::makePlan(size);
  for (Parameter &parameter : plan.parameters)
    parameter.offset += 1;
  EXPECT_EQ(verify(plan).size(), 100u);
}

/// Attention of layers draws by key 3, along these axes of the mesh.
Plan drawing(const std::vector<std::string> &forward,
             const std::vector<std::string> &backward) {
  Plan plan = test::makePlan();
  for (Function &function : plan.functions)
    for (const auto &[name, axes] :
         {std::pair("DecoderLayer.forward", forward),
          std::pair("DecoderLayer.backward", backward)})
      if (function.name == name) {
        Arg &key = function.instructions.back().args.emplace_back();
        key.kind = Arg::Kind::Key;
        key.intValue = 3;
        key.axes = axes;
      }
  std::map<std::string, int> draws;
  for (Program &program : plan.programs)
    for (ProgramInstruction &at : program.instructions)
      if (at.kind == ProgramInstructionKind::Call &&
          plan.functions[at.function].draws())
        at.draw = draws.try_emplace(at.where, int(draws.size())).first->second;
  predictMemory(plan);
  return plan;
}

TEST(PlanVerify, RanksDrawAlongAxesOfTheMesh) {
  EXPECT_EQ(verify(drawing({}, {})), std::vector<std::string>{});
  EXPECT_EQ(verify(drawing({"dp_shard"}, {"dp_shard"})),
            std::vector<std::string>{});
  auto says = [](const Plan &plan, const std::string &text) {
    for (const std::string &problem : verify(plan))
      if (problem.find(text) != std::string::npos)
        return true;
    return false;
  };
  EXPECT_TRUE(says(drawing({"tp"}, {"tp"}), "which is no axis of the mesh"));
  EXPECT_TRUE(says(drawing({"dp_shard"}, {}),
                   "draws along other axes of the mesh than the call before it "
                   "with key 3"));
}

} // namespace
