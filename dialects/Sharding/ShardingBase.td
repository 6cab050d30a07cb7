//===- ShardingBase.td - The sharding dialect --------------*- tablegen -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_DIALECTS_SHARDING_BASE_TD
#define ACCEL_DIALECTS_SHARDING_BASE_TD

include "mlir/IR/OpBase.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/IR/BuiltinAttributes.td"

def Sharding_Dialect : Dialect {
  let name = "sharding";
  let cppNamespace = "::accel::sharding";
  let summary = "What is stored where, and every decision about it";
  let description = [{
    The declarative level. A module holds one device `mesh`, one `job`, the
    `module` tree of the model (FQN and class survive import, so that wrap
    policies and regexes work on it), its `param`s, the compute graph as calls
    of segment functions, and, once the wrap pass ran, the `unit`s.

    Storage and computation are separate: a unit is what is gathered and
    reduced together, a segment is a function between module boundaries. A
    segment may read several units and a unit may serve several segments.

    Each decision is a typed attribute that carries its reason and, where a
    line of the YAML caused it, that line.
  }];
  let useDefaultAttributePrinterParser = 1;
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
  let hasRegionResultAttrVerify = 1;
}

class Sharding_Attr<string name, string attrMnemonic, list<Trait> traits = []>
    : AttrDef<Sharding_Dialect, name, traits> {
  let mnemonic = attrMnemonic;
}

class Sharding_Op<string mnemonic, list<Trait> traits = []>
    : Op<Sharding_Dialect, mnemonic, traits>;

#endif // ACCEL_DIALECTS_SHARDING_BASE_TD
