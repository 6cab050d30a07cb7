//===- ScheduleBase.td - The schedule dialect --------------*- tablegen -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_DIALECTS_SCHEDULE_BASE_TD
#define ACCEL_DIALECTS_SCHEDULE_BASE_TD

include "mlir/IR/OpBase.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"

def Schedule_Dialect : Dialect {
  let name = "schedule";
  let cppNamespace = "::accel::schedule";
  let summary = "What a rank does, in order, byte by byte";
  let description = [{
    The imperative level. A `schedule.program` is one kind of micro-batch: it
    allocates the buffers of units, starts and awaits collectives, calls compute
    functions, frees, and updates parameters. Every buffer type carries its
    bytes, so the memory at each point can be read off the text.

    Data that a collective works on has a type of its own, `!schedule.inflight`,
    and can be used again only through `schedule.await`: what reads too early
    does not type-check. Operations of one stream run in the order of the
    block; streams wait for each other only where something is awaited, and a
    start waits for the computation in front of it.

    Of a pipeline each stage has programs of its own, marked `schedule.stage`. A
    `schedule.pause` ends a micro-batch's forward there. Where a stage has
    several chunks of the model, each has programs, marked `schedule.chunk`
    behind the first one; further pauses end the backward and, of the last
    micro-batch, what is before the norm and the updates.

    Inside of functions, what ranks exchange is over where it stands, unless it
    is marked `schedule.start`, with the reason: then it is over at its
    `schedule.await_exchange`, and what stands between runs beside it.

    Units are named by strings, as `sharding.unit` declares them. Locations hold
    the module path that a step serves.
  }];
  let useDefaultAttributePrinterParser = 1;
  let useDefaultTypePrinterParser = 1;
  let hasOperationAttrVerify = 1;
}

def Schedule_Role
    : I32EnumAttr<"Role", "what a unit's buffer is for", [
        I32EnumAttrCase<"Gathered", 0, "gathered">,
        I32EnumAttrCase<"Gradient", 1, "gradient">,
        I32EnumAttrCase<"Receive", 2, "receive">,
        I32EnumAttrCase<"ShardGradient", 3, "shard_gradient">]> {
  let cppNamespace = "::accel::schedule";
  let genSpecializedAttr = 0;
}
def Schedule_RoleAttr : EnumAttr<Schedule_Dialect, Schedule_Role, "role">;

def Schedule_Stream
    : I32EnumAttr<"Stream", "a queue of work", [
        I32EnumAttrCase<"Compute", 0, "compute">,
        I32EnumAttrCase<"Gather", 1, "gather">,
        I32EnumAttrCase<"Reduce", 2, "reduce">,
        I32EnumAttrCase<"Send", 3, "send">,
        I32EnumAttrCase<"HostOut", 4, "host_out">,
        I32EnumAttrCase<"HostIn", 5, "host_in">,
        I32EnumAttrCase<"Host", 6, "host">]> {
  let cppNamespace = "::accel::schedule";
  let genSpecializedAttr = 0;
}
def Schedule_StreamAttr : EnumAttr<Schedule_Dialect, Schedule_Stream, "stream">;

class Schedule_Type<string name, string typeMnemonic>
    : TypeDef<Schedule_Dialect, name> {
  let mnemonic = typeMnemonic;
}

def Schedule_BufferType : Schedule_Type<"Buffer", "buffer"> {
  let summary = "memory of a rank, with its size";
  let description = [{
    Bytes that this value owns, a multiple of 64. An activation also says what
    tensor it is; one that shares another's storage owns 0 bytes.

    ```mlir
    !schedule.buffer<1048576>
    !schedule.buffer<1048576, tensor<512x512xf32>>
    ```
  }];
  let parameters = (ins "int64_t":$bytes, OptionalParameter<"::mlir::Type">:$tensor);
  let assemblyFormat = "`<` $bytes (`,` $tensor^)? `>`";
  let genVerifyDecl = 1;
}

def Schedule_InflightType : Schedule_Type<"Inflight", "inflight"> {
  let summary = "buffers that a collective works on";
  let description = [{
    The bytes of each buffer that was given to the start of a collective. Only
    `schedule.await` takes it, once, and gives the buffers back in this order.
  }];
  let parameters = (ins ArrayRefParameter<"int64_t">:$bytes);
  let assemblyFormat = "`<` $bytes `>`";
  let genVerifyDecl = 1;
}

class Schedule_Attr<string name, string attrMnemonic>
    : AttrDef<Schedule_Dialect, name> {
  let mnemonic = attrMnemonic;
}

def Schedule_ParamAttr : Schedule_Attr<"Param", "param"> {
  let summary = "a parameter, by unit and FQN";
  let parameters = (ins StringRefParameter<>:$unit, StringRefParameter<>:$fqn);
  let assemblyFormat = "`<` $unit `,` $fqn `>`";
}

def Schedule_GradientAttr : Schedule_Attr<"Gradient", "gradient"> {
  let summary = "a parameter's gradient, written or added to";
  let parameters = (ins StringRefParameter<>:$unit, StringRefParameter<>:$fqn,
                        DefaultValuedParameter<"bool", "false">:$accumulate);
  let assemblyFormat = "`<` $unit `,` $fqn (`,` `accumulate` `=` $accumulate^)? `>`";
}

def Schedule_DestinationAttr : Schedule_Attr<"Destination", "destination"> {
  let summary = "how a function leaves a parameter's gradient";
  let description = [{
    On a result that is a parameter's gradient, as `schedule.destination`: the
    function has no such output, but writes the gradient, or adds it to what is
    there, in a buffer of this element type that its caller passes.

    ```mlir
    func.func private @"L.backward@bf16+0"(...)
        -> (tensor<8x8xf32> {aten.binding = #aten.binding<param_grad 0>,
                             schedule.destination = #schedule.destination<bf16, accumulate = true>})
    ```
  }];
  let parameters = (ins "::mlir::Type":$dtype,
                        DefaultValuedParameter<"bool", "false">:$accumulate);
  let assemblyFormat = "`<` $dtype (`,` `accumulate` `=` $accumulate^)? `>`";
}

def Schedule_CarriedAttr : Schedule_Attr<"Carried", "carried"> {
  let summary = "a unit's buffer that an earlier program left";
  let parameters = (ins StringRefParameter<>:$unit,
                        EnumParameter<Schedule_Role>:$role);
  let assemblyFormat = "`<` $unit `,` $role `>`";
}

class Schedule_Op<string mnemonic, list<Trait> traits = []>
    : Op<Schedule_Dialect, mnemonic, traits>;

#endif // ACCEL_DIALECTS_SCHEDULE_BASE_TD
