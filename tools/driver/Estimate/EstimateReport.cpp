//===- EstimateReport.cpp - What a model takes, as text and JSON ----------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/driver/Estimate/Estimate.h"
#include "tools/driver/Text/Format.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

using llvm::formatv;

namespace accel::estimate {

using Json = nlohmann::ordered_json;

namespace {

std::string millions(int64_t n) {
  char text[64];
  std::snprintf(text, sizeof text, n >= 1000000000 ? "%.2f B" : "%.3g M",
                static_cast<double>(n) / (n >= 1000000000 ? 1e9 : 1e6));
  return n < 100000 ? std::to_string(n) : text;
}

/// What Accelerate's table leaves out or gets wrong for this model.
std::vector<std::string> missing(const Estimate &e) {
  std::vector<std::string> out;
  auto lacks = missingParameters(e.full, e.base);
  int64_t elements = 0;
  for (const TreeParameter *p : lacks)
    elements += p->numel();
  if (elements)
    out.push_back(
        lacks[0]->fqn +
        (lacks.size() > 1 ? " and " + std::to_string(lacks.size() - 1) + " more"
                          : "") +
        ": " + millions(elements) + " parameters, " +
        formatBytes(4 * elements) + " in float32; it makes " +
        e.base.architecture + ", the file names " + e.full.architecture);
  int64_t again = 0;
  for (const TreeParameter &p : e.base.parameters)
    again += p.tiedTo >= 0 ? p.numel() : 0;
  if (again)
    out.push_back("tied weights: " + formatBytes(4 * again) +
                  " in float32 that it counts again");
  out.push_back("bfloat16: the same as float16");
  out.push_back("training in float16: it prints the larger of its parts, not "
                "their sum, 8 B per parameter instead of 16 and 2 while a step "
                "computes");
  if (e.activations)
    out.push_back(
        "activations: " + formatBytes(e.activations->saved) + " and logits " +
        formatBytes(e.activations->logits) + " at the peak of a step of " +
        std::to_string(e.activations->microBatch) + " x " +
        std::to_string(e.activations->sequenceLength) +
        " tokens in bf16 (a plan for accel-run, which recomputes pointwise "
        "operators)");
  else
    out.push_back("activations: not known here (" + e.whyNoActivations + ")");
  out.push_back(
      "int8 and int4: embeddings, norms and the head stay in 16 bits, "
      "and scales are added");
  if (e.sizes.bufferBytes)
    out.push_back("buffers: " + formatBytes(e.sizes.bufferBytes) +
                  " that it divides as if they were parameters");
  if (!e.full.quantization.empty())
    out.push_back("the checkpoint is quantized (" + e.full.quantization +
                  "); it counts float32 weights");
  out.push_back("what the device takes besides: context, libraries, allocator; "
                "and what sharding saves: accel-opt plan CONFIG.yaml --model " +
                e.model + " --target NAME");
  return out;
}

} // namespace

std::string renderEstimate(const Estimate &e) {
  std::string text = table(e.model, e.rows);
  llvm::raw_string_ostream out(text);
  const TrueSizes &s = e.sizes;
  out << formatv("\n{0}, {1} parameters ({2})\n\n", e.full.architecture,
                 millions(s.parameters), s.parameters);
  out << "  to load it                            bytes\n";
  for (const LoadedSize &l : s.loaded)
    out << formatv("    {0,-24} {1,14}   {2}\n", l.name, formatBytes(l.bytes),
                   l.how);
  out << formatv("\n  to train it with {0,-18} weights  gradients  "
                 "optimizer     copies        sum\n",
                 e.optimizer);
  for (const TrainingSize &t : s.training)
    out << formatv("    {0,-32} {1,10} {2,10} {3,10} {4,10} {5,10}\n", t.name,
                   formatBytes(t.weights), formatBytes(t.gradients),
                   formatBytes(t.optimizer),
                   t.casts ? formatBytes(t.casts) : "-",
                   formatBytes(t.total()));
  if (e.activations)
    out << formatv("    and activations of {0} x {1} tokens in bf16 {2}\n",
                   e.activations->microBatch, e.activations->sequenceLength,
                   formatBytes(e.activations->total()));
  out << "\n  what Accelerate's table leaves out\n";
  for (const std::string &line : missing(e))
    out << "    - " << line << '\n';
  return text;
}

Json estimateJson(const Estimate &e) {
  Json rows = Json::array(), loaded = Json::array(), training = Json::array();
  for (const Row &r : e.rows)
    rows.push_back(
        {{"dtype", toString(r.dtype)},
         {"largest_layer_bytes", r.largestLayer},
         {"total_bytes", r.total},
         {"training_bytes", r.training ? Json(*r.training) : Json(nullptr)}});
  for (const LoadedSize &l : e.sizes.loaded)
    loaded.push_back({{"dtype", l.name}, {"bytes", l.bytes}, {"how", l.how}});
  for (const TrainingSize &t : e.sizes.training)
    training.push_back({{"precision", t.name},
                        {"bytes_per_parameter", t.bytesPerParameter},
                        {"weights_bytes", t.weights},
                        {"gradients_bytes", t.gradients},
                        {"optimizer_bytes", t.optimizer},
                        {"copies_bytes", t.casts},
                        {"total_bytes", t.total()},
                        {"how", t.how}});
  Json activations = nullptr;
  if (e.activations)
    activations = {{"micro_batch", e.activations->microBatch},
                   {"sequence_length", e.activations->sequenceLength},
                   {"saved_bytes", e.activations->saved},
                   {"logits_bytes", e.activations->logits}};
  return {{"model", e.model},
          {"model_type", e.full.modelType},
          {"accelerate",
           {{"class", e.base.architecture},
            {"largest_layers", e.table.largestLayers},
            {"rows", rows}}},
          {"class", e.full.architecture},
          {"parameters", e.sizes.parameters},
          {"buffer_bytes", e.sizes.bufferBytes},
          {"loaded", loaded},
          {"training", training},
          {"activations", activations},
          {"missing", missing(e)}};
}

} // namespace accel::estimate
