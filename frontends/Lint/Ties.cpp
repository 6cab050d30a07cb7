//===- Ties.cpp - Tensors that two units share ----------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "frontends/Lint/UnitProblem.h"

#include <algorithm>

namespace accel::lint {

/// FQN of the innermost module that the policy wraps around `fqn`; "" is the
/// root.
static std::string unitOf(const ModuleTree &tree,
                          const std::vector<std::string> &classes, int module) {
  for (; module > 0;
       module = tree.modules[static_cast<size_t>(module)].parent) {
    const TreeModule &m = tree.modules[static_cast<size_t>(module)];
    if (std::find(classes.begin(), classes.end(), m.className) != classes.end())
      return m.fqn;
  }
  return "";
}

void checkTiedWeights(const Subject &subject) {
  if (!subject.tree || !subject.isFsdp() || subject.config->assumed.wrapPolicy)
    return;
  const ModuleTree &tree = *subject.tree;
  std::vector<std::string> classes;
  if (*subject.config->wrapPolicy == WrapPolicy::Transformer)
    classes = wrapClasses(subject);
  Field place = subject.in("fsdp_config", "fsdp_transformer_layer_cls_to_wrap");
  if (!place || place.isNull())
    place = subject.in("fsdp_config", "fsdp_auto_wrap_policy");
  for (const TreeParameter &p : tree.parameters) {
    if (p.tiedTo < 0)
      continue;
    const TreeParameter &first = tree.parameters[static_cast<size_t>(p.tiedTo)];
    std::string a = unitOf(tree, classes, first.module),
                b = unitOf(tree, classes, p.module);
    std::string pair = "'" + p.fqn + "' and '" + first.fqn + "'";
    if (!subject.isFsdp2()) {
      // The unit that is wrapped first owns it; the other module keeps a shard.
      if (a == b || !subject.config->sharded())
        continue;
      subject.report(Severity::Error, "tied-across-units", place,
                     pair + " are one tensor, which one unit owns, so that the "
                            "other module sees a shard of it; every rank stops "
                            "with a RuntimeError in the forward",
                     "do not wrap the class of either");
      return;
    }
    // Accelerate puts input and output embedding into one group from 1.15 on.
    if (subject.torch < AccelerateVersion{2, 13} ||
        subject.version >= AccelerateVersion{1, 15})
      continue;
    subject.report(Severity::Error, "tied-across-units", place,
                   pair + " are one tensor, which accelerate " +
                       toString(subject.version) +
                       " puts into two groups; torch 2.13 and later refuse "
                       "that in every rank",
                   "use accelerate 1.15, or write tie_word_embeddings: false "
                   "into the model's config.json");
    return;
  }
}

} // namespace accel::lint
