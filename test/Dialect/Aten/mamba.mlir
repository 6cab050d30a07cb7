// RUN: accel-opt opt %s | accel-opt opt | FileCheck %s
// RUN: accel-opt opt %s --differentiate | FileCheck %s --check-prefix=JOINT
// RUN: accel-opt opt %s --print-sharding-rules -o /dev/null 2>&1 | FileCheck %s --check-prefix=RULE

// A mixer of 4 heads of 4 elements in 2 groups with states of 8: 16 of the gate and of the input, 16 of B and of C, 4
// steps. Its autograd function saves the projection, the scan's output and the norm's statistics.

// CHECK: %result, %scanned, %rstd = aten.mamba2_mixer {{.*}} {chunk = 16 : i64, {{.*}} -> (tensor<1x32x16xbf16>, tensor<1x32x16xbf16>, tensor<1x32x2xf32>)

// JOINT-LABEL: @Mixer.joint
// JOINT: %[[Y:[^,]+]], %[[S:[^,]+]], %[[R:[^ ]+]] = aten.mamba2_mixer %arg0,
// JOINT: aten.mamba2_mixer_backward %{{[^,]+}}, %arg0, {{.*}}, %[[S]], %[[R]] {
// JOINT-SAME: -> (tensor<1x32x68xbf16>, tensor<48x1x4xbf16>, tensor<48xbf16>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<16xbf16>)

// Batches and groups of heads are for themselves; tokens pass one scan.
// RULE: {"combine":"sum","form":"none","kind":"parallel","size":2},{"combine":"sum","form":"none","kind":"whole","size":34}
// RULE-SAME: "name":"aten.mamba2_mixer","once":[],"operands":[{"dims":[{{\[0\],\[\],\[1,2\]\]}}
// RULE-SAME: "sizes":[{{.*}}"groups"
func.func private @Mixer(%x: tensor<1x32x68xbf16>, %conv: tensor<48x1x4xbf16> {sharding.param = "conv1d.weight"}, %bias: tensor<48xbf16> {sharding.param = "conv1d.bias"}, %step: tensor<4xf32> {sharding.param = "dt_bias"}, %decay: tensor<4xf32> {sharding.param = "A_log"}, %skip: tensor<4xf32> {sharding.param = "D"}, %norm: tensor<16xbf16> {sharding.param = "norm.weight"}) -> tensor<1x32x16xbf16> {
  %0:3 = aten.mamba2_mixer %x, %conv, %bias, %step, %decay, %skip, %norm {chunk = 16 : i64, eps = 1.0e-05 : f64, groups = 2 : i64, head_dim = 4 : i64, state = 8 : i64, step_min = 1.0e-03 : f64} : (tensor<1x32x68xbf16>, tensor<48x1x4xbf16>, tensor<48xbf16>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<16xbf16>) -> (tensor<1x32x16xbf16>, tensor<1x32x16xbf16>, tensor<1x32x2xf32>)
  return %0#0 : tensor<1x32x16xbf16>
}
