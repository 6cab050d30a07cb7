//===- MambaConfig.cpp - Mamba layers of a config.json --------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/HuggingFace/DecoderReader.h"

using namespace accel;
using namespace accel::huggingface;

void DecoderReader::blocks() {
  using Blocks = DecoderLayerKind::Blocks;
  for (size_t i = 0; i < d.kinds.size(); ++i) {
    const std::string &block = tree.blocks[i];
    d.kinds[i].blocks = block == "mamba"       ? Blocks::Mamba
                        : block == "attention" ? Blocks::Attention
                                               : Blocks::Mlp;
    d.kinds[i].sparse = block == "moe";
  }
}

void DecoderReader::mamba() {
  MambaMixer &m = d.mamba;
  m.path = "mixer";
  m.in = "mixer.in_proj";
  m.convolution = "mixer.conv1d";
  m.norm = "mixer.norm";
  m.out = "mixer.out_proj";
  m.stepBias = "mixer.dt_bias";
  m.decay = "mixer.A_log";
  m.skip = "mixer.D";
  m.heads = size("mamba_num_heads");
  m.headDim = size("mamba_head_dim");
  m.groups = size("mamba_n_groups");
  m.state = size("ssm_state_size");
  m.chunk = size("mamba_chunk_size");
  m.stepMin = json.number("time_step_min", 0.001);
  m.stepMax = json.number("time_step_max", 0.1);
  m.scalesOutput = flag("rescale_prenorm_residual");
  if (m.stepMin <= 0 || m.stepMax < m.stepMin)
    json.error(firstOf({"time_step_min", "time_step_max"}),
               "'time_step_min' must be above 0 and at most 'time_step_max'");
  if (json.number("time_step_floor", 1e-4) > m.stepMin)
    json.unsupported("time_step_floor",
                     "a 'time_step_floor' above 'time_step_min' is not "
                     "supported yet");
  if (m.groups < 1 || m.heads % m.groups != 0)
    json.error(firstOf({"mamba_n_groups", "n_groups", "mamba_num_heads"}),
               "the " + std::to_string(m.heads) +
                   " heads of Mamba layers are not a multiple of the " +
                   std::to_string(m.groups) + " groups");
  if (!flag("mamba_conv_bias"))
    json.unsupported(firstOf({"mamba_conv_bias", "use_conv_bias"}),
                     "a convolution without bias is not supported yet");
  if (auto act = json.text("mamba_hidden_act"); act && *act != "silu")
    json.unsupported("mamba_hidden_act",
                     "Mamba layers with another activation than silu are not "
                     "supported yet");
}
