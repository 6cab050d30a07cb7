//===- FixTest.cpp - Edits, fixes and diffs -------------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "frontends/Yaml/Fix.h"
#include "frontends/Accelerate/AccelerateConfig.h"
#include "frontends/Diagnostics/Diff.h"
#include "frontends/Yaml/Editor.h"

#include <functional>
#include <gtest/gtest.h>

using namespace accel;
using namespace accel::yaml;

namespace {

using Make = std::function<Edits(const Editor &, const Node &root)>;

/// The text after the edits, or "no edit". What was not meant to change must
/// not.
std::string edited(const std::string &text, const Make &make,
                   const char *file = "a.yaml") {
  DiagnosticEngine engine;
  auto document = parseText(file, text, engine);
  if (!document || !document->root())
    return "no document";
  Edits edits = make(Editor(text, file), *document->root());
  if (edits.empty())
    return "no edit";
  std::string after = applyEdits(text, edits);
  EXPECT_TRUE(keepsOtherValues(file, text, after, edits)) << after;
  return after;
}

Make setText(const char *key, const char *value) {
  return [=](const Editor &e, const Node &root) {
    return e.setText(*root.findEntry(key), value);
  };
}
Make remove(const char *key) {
  return [=](const Editor &e, const Node &root) {
    return e.remove(*root.findEntry(key));
  };
}
Make insert(const char *key, const char *raw) {
  return [=](const Editor &e, const Node &root) {
    return e.insert(root, key, raw);
  };
}

TEST(Editor, ValuesKeepCommentsAndQuotes) {
  EXPECT_EQ(edited("a: no  # c\nb: 1\n", setText("a", "no")),
            "a: 'no'  # c\nb: 1\n");
  EXPECT_EQ(edited("a: \"x, y\"\n", setText("a", "x,y")), "a: \"x,y\"\n");
  EXPECT_EQ(edited("a: x, y # c\n", setText("a", "x,y")), "a: x,y # c\n");
  EXPECT_EQ(edited("{a: 'x, y'}", setText("a", "x,y")), "{a: 'x,y'}");
  EXPECT_EQ(edited("{a: x}", setText("a", "x,y")), "{a: 'x,y'}");
  EXPECT_EQ(edited("a:\nb: 2\n", setText("a", "x")), "a: x\nb: 2\n");
  EXPECT_EQ(edited("a: [x, y] # c\nb: 1\n", setText("a", "x,y")),
            "a: x,y # c\nb: 1\n");
  EXPECT_EQ(edited("a:\n  - x\n  - y\nb: 1\n", setText("a", "x,y")),
            "a: x,y\nb: 1\n");
  // A comment inside would be lost.
  EXPECT_EQ(edited("a:\n  - x # c\n  - y\n", setText("a", "x,y")), "no edit");
  EXPECT_EQ(edited("{\"a\": false}", setText("a", "no"), "a.json"),
            "{\"a\": \"no\"}");
  for (const char *text :
       {"it's", "1e8", "12", "a: b", "# x", "~", "[x", "- x", "", " x", "x ",
        "0x1f", "2001-01-01", "<<", "\xc3\xa9"})
    EXPECT_EQ(
        edited("a: 1\n",
               [&](const Editor &e, const Node &root) {
                 Edits edits = e.setText(*root.findEntry("a"), text);
                 DiagnosticEngine engine;
                 auto again =
                     parseText("a.yaml", applyEdits("a: 1\n", edits), engine);
                 EXPECT_TRUE(again && again->root()->find("a")->isString() &&
                             again->root()->find("a")->text == text)
                     << text;
                 return Edits();
               }),
        "no edit");
}

TEST(Editor, RemovesLinesAndKeepsTheirComments) {
  EXPECT_EQ(edited("a: 1\nb: 2\nc: 3\n", remove("b")), "a: 1\nc: 3\n");
  EXPECT_EQ(edited("a: 1\nb: 2 # why\nc: 3\n", remove("b")),
            "a: 1\n# why\nc: 3\n");
  EXPECT_EQ(edited("a: 1\r\nb: 2\r\nc: 3\r\n", remove("b")),
            "a: 1\r\nc: 3\r\n");
  EXPECT_EQ(edited("a: 1\nb: 2", remove("b")), "a: 1\n");
  EXPECT_EQ(edited("\xef\xbb\xbf"
                   "a: 1\nb: 2\n",
                   remove("a")),
            "\xef\xbb\xbf"
            "b: 2\n");
  EXPECT_EQ(edited("a: 1\nb:\n  - x\n  - y\nc: 3\n", remove("b")),
            "a: 1\nc: 3\n");
  EXPECT_EQ(edited("{a: 1, b: 2, c: 3}", remove("a")), "{b: 2, c: 3}");
  EXPECT_EQ(edited("{a: 1, b: 2, c: 3}", remove("c")), "{a: 1, b: 2}");
  EXPECT_EQ(edited("{a: 1}", remove("a")), "{}");
  EXPECT_EQ(edited("{\n  \"a\": 1,\n  \"b\": 2\n}\n", remove("b"), "a.json"),
            "{\n  \"a\": 1\n}\n");
  EXPECT_EQ(edited("{\n  \"a\": 1,\n  \"b\": 2\n}\n", remove("a"), "a.json"),
            "{\n  \"b\": 2\n}\n");
}

TEST(Editor, InsertsWithTheIndentationOfTheOthers) {
  EXPECT_EQ(edited("a: 1 # c\n", insert("b", "true")), "a: 1 # c\nb: true\n");
  EXPECT_EQ(edited("a: 1", insert("b", "true")), "a: 1\nb: true");
  EXPECT_EQ(edited("{a: 1}", insert("b", "true")), "{a: 1, b: true}");
  EXPECT_EQ(edited("{}", insert("b", "true")), "{b: true}");
  EXPECT_EQ(edited("{\n  \"a\": 1\n}\n", insert("b", "true"), "a.json"),
            "{\n  \"a\": 1,\n  \"b\": true\n}\n");
  auto nested = [](const Editor &e, const Node &root) {
    return e.insert(*root.find("s"), "b", "2");
  };
  EXPECT_EQ(edited("s:\n    a: 1\n# end\nt: 3\n", nested),
            "s:\n    a: 1\n    b: 2\n# end\nt: 3\n");
  EXPECT_EQ(edited("s: {a: 1}\nt: 3\n", nested), "s: {a: 1, b: 2}\nt: 3\n");
}

TEST(Fix, NeverChangesOtherValues) {
  std::string text = "a: &x no\nb: *x\nc: {<<: {d: 1}, e: 2}\n";
  auto keeps = [&](TextEdit edit) {
    return keepsOtherValues("a.yaml", text, applyEdits(text, {edit}), {edit});
  };
  EXPECT_FALSE(keeps({3, 8, "'no'"})); // the anchor is gone
  EXPECT_FALSE(keeps({6, 8, "'no'"})); // b changes too
  EXPECT_FALSE(keeps({29, 30, "2"}));  // what is merged changes
  EXPECT_FALSE(keeps({0, 8, "a: {"})); // no YAML any more
  EXPECT_TRUE(keeps({9, 14, "b: 1"}));
  EXPECT_TRUE(keeps({9, 9, "c: 1\n"})); // the later one counts
  EXPECT_FALSE(keeps({text.size(), text.size(), "b: 1\n"}));
  EXPECT_TRUE(keeps({9, 9, "f: 1\n"}));
  // A text that cannot be read may only get better.
  EXPECT_TRUE(keepsOtherValues("a.yaml", "a:\t1\n", "a: 1\n", {{2, 3, " "}}));
  EXPECT_FALSE(keepsOtherValues("a.yaml", "a:\t1\n", "a: [\n", {{2, 4, " ["}}));
}

void lint(const std::string &text, DiagnosticEngine &engine) {
  auto document = parseText("a.yaml", text, engine);
  AccelerateOptions options;
  options.forPlanning = false;
  if (document && document->root() && document->root()->isMapping())
    parseAccelerate("a.yaml", *document->root(), "", {}, options, engine);
}

/// The fixed text. Afterwards no fix may be left, and no more errors.
std::string fixed(const std::string &text) {
  FixResult result = makeFixes("a.yaml", text, lint);
  DiagnosticEngine before, after;
  lint(text, before);
  lint(result.text, after);
  EXPECT_LE(after.errors(), before.errors());
  for (const Diagnostic &d : after.all())
    EXPECT_TRUE(d.fix.empty() || d.severity == Severity::Note) << d.message;
  EXPECT_EQ(makeFixes("a.yaml", result.text, lint).text, result.text);
  return result.text;
}

const std::string fsdp2 = "distributed_type: FSDP\nnum_processes: 8\n"
                          "fsdp_config:\n  fsdp_version: 2\n"
                          "  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP\n";
const std::string fsdp1 = "distributed_type: FSDP\nnum_processes: 8\n"
                          "fsdp_config:\n  fsdp_version: 1\n"
                          "  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP\n";
const std::string plain = "num_processes: 1\ndistributed_type: 'NO'\n";

TEST(Fix, TopLevel) {
  EXPECT_EQ(fixed("num_processes: 1\ndistributed_type: NO\n"), plain);
  EXPECT_EQ(fixed(plain + "mixed_precision: no # c\n"),
            plain + "mixed_precision: 'no' # c\n");
  EXPECT_EQ(fixed(plain + "mixed_precision: bf61\n"),
            plain + "mixed_precision: bf16\n");
  EXPECT_EQ(fixed(plain + "gpu_ids: 0\n"), plain + "gpu_ids: '0'\n");
  EXPECT_EQ(fixed(plain + "mixed_precison: bf16\n"),
            plain + "mixed_precision: bf16\n");
  EXPECT_EQ(fixed(plain + "enable_cpu_affinity: true\n"), plain);
  EXPECT_EQ(fixed(plain + "ipex_config: {ipex: true}\n"), plain);
  EXPECT_EQ(fixed("num_processes: 2\n" + plain), plain);
  EXPECT_EQ(fixed("num_processes:\t1\ndistributed_type: 'NO'\n"), plain);
  EXPECT_EQ(fixed(plain + "dynamo_config: {dynamo_backend: no}\n"),
            plain + "dynamo_config: {dynamo_backend: 'no'}\n");
}

TEST(Fix, Fsdp) {
  const std::string classes = "  fsdp_transformer_layer_cls_to_wrap: ";
  EXPECT_EQ(fixed(fsdp2 + classes + "[A, B]\n"), fsdp2 + classes + "A,B\n");
  EXPECT_EQ(fixed(fsdp2 + classes + "A, B # c\n"),
            fsdp2 + classes + "A,B # c\n");
  EXPECT_EQ(fixed(fsdp2 + classes + "''\n"), fsdp2);
  EXPECT_EQ(fixed(fsdp2 + "  fsdp_sharding_strategy: SHARD_GRAD_OP\n"),
            fsdp2 + "  fsdp_reshard_after_forward: false\n");
  EXPECT_EQ(fixed(fsdp2 + "  fsdp_reshard_after_forward: SHARD_GRAD_OP\n"),
            fsdp2 + "  fsdp_reshard_after_forward: false\n");
  EXPECT_EQ(fixed(fsdp1 + "  fsdp_reshard_after_forward: SHARD_GRAD_OP\n"),
            fsdp1 + "  fsdp_sharding_strategy: SHARD_GRAD_OP\n");
  EXPECT_EQ(fixed(fsdp2 + "  fsdp_forward_prefetch: true\n"), fsdp2);
  EXPECT_EQ(fixed(fsdp2 + "  fsdp_offload_params: null\n"), fsdp2);
  EXPECT_EQ(fixed(fsdp2 + "  fsdp_state_dict_type: SHARDED_STATE_DIC\n"),
            fsdp2 + "  fsdp_state_dict_type: SHARDED_STATE_DICT\n");
  EXPECT_EQ(fixed(fsdp2 + "  activation_checkpointin: true\n"),
            fsdp2 + "  activation_checkpointing: true\n");
  EXPECT_EQ(fixed(fsdp1 + "  fsdp_backward_prefetch_policy: NO_PREFETCH\n"),
            fsdp1 + "  fsdp_backward_prefetch: NO_PREFETCH\n");
  EXPECT_EQ(fixed("distributed_type: FSDP\nnum_processes: 8\nfsdp_config:\n"
                  "  fsdp_version: 2\n  fsdp_min_num_params: 1e8 # c\n"
                  "  fsdp_auto_wrap_policy: size_based_wrp\n"),
            "distributed_type: FSDP\nnum_processes: 8\nfsdp_config:\n"
            "  fsdp_version: 2\n  fsdp_min_num_params: 100000000 # c\n"
            "  fsdp_auto_wrap_policy: SIZE_BASED_WRAP\n");
}

TEST(Fix, OtherSections) {
  const std::string mesh = "distributed_type: FSDP\nnum_processes: 2\n"
                           "fsdp_config: {fsdp_version: 2, "
                           "fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP}\n"
                           "parallelism_config:\n";
  EXPECT_EQ(fixed(mesh + "  dp_shard_size: 2\n"),
            mesh + "  parallelism_config_dp_shard_size: 2\n");
  const std::string fp8 = plain + "mixed_precision: fp8\nfp8_config:\n";
  EXPECT_EQ(fixed(fp8 + "  amax_history_length: 3\n"),
            fp8 + "  amax_history_len: 3\n");
  EXPECT_EQ(fixed(fp8 + "  override_linear_precision: (false, True,false)\n"),
            fp8 + "  override_linear_precision: [false, true, false]\n");
  // A key of a section at the top level.
  EXPECT_EQ(fixed("fsdp_offload_params: true # c\n" + fsdp2),
            "# c\n" + fsdp2 + "  fsdp_offload_params: true\n");
}

TEST(Fix, LeavesWhatIsShared) {
  // The anchored value is also the name of something else.
  std::string text = plain + "mixed_precision: &p no\ndebug: *p\n";
  FixResult result = makeFixes("a.yaml", text, lint);
  EXPECT_EQ(result.text, text);
  EXPECT_EQ(result.refused, 1u);
  // Other fixes are still made.
  result = makeFixes("a.yaml", text + "gpu_ids: 0\n", lint);
  EXPECT_EQ(result.text, text + "gpu_ids: '0'\n");
}

TEST(Diff, LikeDiffU) {
  EXPECT_EQ(unifiedDiff("a\n", "a\n", "f"), "");
  EXPECT_EQ(unifiedDiff("1\n2\n3\n4\n5\n6\n7\n8\n9\n",
                        "1\n2\n3\n4\nx\n6\n7\n8\n9\n", "f"),
            "--- f\n+++ f\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+x\n 6\n 7\n 8\n");
  EXPECT_EQ(unifiedDiff("", "a\n", "f"), "--- f\n+++ f\n@@ -0,0 +1 @@\n+a\n");
  EXPECT_EQ(
      unifiedDiff("a", "a\n", "f"),
      "--- f\n+++ f\n@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+a\n");
  // Changes that are far apart are hunks of their own.
  std::string far;
  for (int i = 0; i < 30; ++i)
    far += std::to_string(i) + "\n";
  std::string other = "x\n" + far.substr(2, far.size() - 5) + "y\n";
  std::string diff = unifiedDiff(far, other, "f");
  EXPECT_NE(diff.find("@@ -1,4 +1,4 @@\n-0\n+x\n"), std::string::npos);
  EXPECT_NE(diff.find("@@ -27,4 +27,4 @@\n 26\n 27\n 28\n-29\n+y\n"),
            std::string::npos);
}

} // namespace
