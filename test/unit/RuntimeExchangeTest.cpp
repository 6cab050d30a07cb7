//===- RuntimeExchangeTest.cpp - Exchanges on ranks that run --------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/collectives/PeerMemory.h"
#include "runtime/execute/ExchangeCall.h"
#include "test/unit/RuntimeRanks.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <numeric>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace accel;
using namespace accel::test;
using plan::ExchangeKind;

namespace {

/// Two groups of three ranks; a rank's place on "tp" varies fastest.
plan::Plan mesh() {
  plan::Plan plan;
  plan.device = "cpu";
  plan.axes = {{"dp_shard", 2}, {"tp", 3}};
  return plan;
}

/// What rank `place` of a group has.
at::Tensor valueOf(int place, int64_t group, at::ScalarType dtype) {
  return (at::arange(2 * 6 * 3, at::kFloat).reshape({2, 6, 3}) + 100.0 * place +
          1000.0 * static_cast<double>(group))
      .to(dtype);
}

struct Case {
  const char *name;
  plan::Exchange exchange;
  /// The result of rank `place`, from all ranks' values.
  at::Tensor (*expected)(const std::vector<at::Tensor> &values, int place);
};

plan::Exchange make(ExchangeKind kind, int64_t dim = 0, int64_t pieces = 1,
                    int64_t concat = 0) {
  plan::Exchange exchange;
  exchange.kind = kind;
  exchange.dim = dim;
  exchange.pieces = pieces;
  exchange.concat = concat;
  exchange.axes = {"tp"};
  return exchange;
}

plan::Exchange mirrored(ExchangeKind kind) {
  plan::Exchange exchange = make(kind, 1, 2);
  exchange.mirrored = true;
  return exchange;
}

plan::Exchange moved(int64_t shift) {
  plan::Exchange exchange = make(ExchangeKind::Permute);
  exchange.shift = shift;
  return exchange;
}

/// The part of two mirrored pieces that rank `place` has, as far from the start
/// as from the end.
at::Tensor endsOf(const at::Tensor &value, int place) {
  return at::cat({value.narrow(1, place, 1), value.narrow(1, 5 - place, 1)}, 1);
}

plan::Exchange largest() {
  plan::Exchange exchange = make(ExchangeKind::AllReduce);
  exchange.max = true;
  return exchange;
}

at::Tensor sumOf(const std::vector<at::Tensor> &values) {
  return values[0] + values[1] + values[2];
}

const Case cases[] = {
    {"sum", make(ExchangeKind::AllReduce),
     [](const std::vector<at::Tensor> &v, int) { return sumOf(v); }},
    {"largest", largest(),
     [](const std::vector<at::Tensor> &v, int) { return v[2]; }},
    {"gather of rows", make(ExchangeKind::AllGather, 0),
     [](const std::vector<at::Tensor> &v, int) { return at::cat(v, 0); }},
    {"gather of columns", make(ExchangeKind::AllGather, 1),
     [](const std::vector<at::Tensor> &v, int) { return at::cat(v, 1); }},
    {"gather of the last dimension", make(ExchangeKind::AllGather, 2),
     [](const std::vector<at::Tensor> &v, int) { return at::cat(v, 2); }},
    {"gather of two pieces", make(ExchangeKind::AllGather, 1, 2),
     [](const std::vector<at::Tensor> &v, int) {
       std::vector<at::Tensor> parts;
       for (int64_t piece : {0, 1})
         for (const at::Tensor &value : v)
           parts.push_back(value.narrow(1, piece * 3, 3));
       return at::cat(parts, 1);
     }},
    {"scatter of columns", make(ExchangeKind::ReduceScatter, 1),
     [](const std::vector<at::Tensor> &v, int place) {
       return sumOf(v).narrow(1, place * 2, 2);
     }},
    {"scatter of the last dimension", make(ExchangeKind::ReduceScatter, 2),
     [](const std::vector<at::Tensor> &v, int place) {
       return sumOf(v).narrow(2, place, 1);
     }},
    {"slice of two pieces", make(ExchangeKind::Slice, 1, 2),
     [](const std::vector<at::Tensor> &v, int place) {
       return at::cat(
           {v[place].narrow(1, place, 1), v[place].narrow(1, 3 + place, 1)}, 1);
     }},
    {"columns for rows", make(ExchangeKind::AllToAll, 1, 1, 0),
     [](const std::vector<at::Tensor> &v, int place) {
       std::vector<at::Tensor> parts;
       for (const at::Tensor &value : v)
         parts.push_back(value.narrow(1, place * 2, 2));
       return at::cat(parts, 0);
     }},
    {"gather of mirrored pieces", mirrored(ExchangeKind::AllGather),
     [](const std::vector<at::Tensor> &v, int) {
       std::vector<at::Tensor> parts;
       for (int rank : {0, 1, 2})
         parts.push_back(v[rank].narrow(1, 0, 3));
       for (int rank : {2, 1, 0})
         parts.push_back(v[rank].narrow(1, 3, 3));
       return at::cat(parts, 1);
     }},
    {"scatter of mirrored pieces", mirrored(ExchangeKind::ReduceScatter),
     [](const std::vector<at::Tensor> &v, int place) {
       return endsOf(sumOf(v), place);
     }},
    {"slice of mirrored pieces", mirrored(ExchangeKind::Slice),
     [](const std::vector<at::Tensor> &v, int place) {
       return endsOf(v[place], place);
     }},
    {"from the rank before", moved(1),
     [](const std::vector<at::Tensor> &v, int place) {
       return v[(place + 2) % 3];
     }},
    {"from the rank behind", moved(2),
     [](const std::vector<at::Tensor> &v, int place) {
       return v[(place + 1) % 3];
     }},
    {"first rank", make(ExchangeKind::FirstRank),
     [](const std::vector<at::Tensor> &v, int place) {
       return place == 0 ? v[0] : at::zeros_like(v[0]);
     }},
};

/// Rows of each rank by expert, of which ranks have two each: some have none.
const std::vector<std::vector<int64_t>> rowsByExpert = {
    {3, 0, 1, 0, 0, 2}, {0, 0, 0, 6, 0, 0}, {1, 2, 0, 1, 2, 0}};

at::Tensor endsOfAll() {
  at::Tensor ends = at::zeros({3, 6}, at::kInt);
  for (int64_t rank = 0; rank < 3; ++rank)
    for (int64_t expert = 0, end = 0; expert < 6; ++expert)
      ends.index_put_({at::tensor(rank), at::tensor(expert)},
                      at::tensor(end += rowsByExpert[rank][expert], at::kInt));
  return ends;
}

TEST(RuntimeExchange, RowsGoToTheirExpertsAndBack) {
  const plan::Plan plan = mesh();
  const at::Tensor ends = endsOfAll();
  const auto wrong = onRanks(plan, [&](run::Groups &groups) {
    const int place = groups.mesh().position({"tp"});
    const int64_t group = groups.mesh().position({"dp_shard"});
    auto call = [&](ExchangeKind kind, int64_t rows) {
      plan::Exchange exchange = make(kind);
      exchange.rows = rows;
      return run::ExchangeCall(exchange, false, groups, at::kCPU);
    };
    // Each row says whose it is, and for which expert.
    std::vector<at::Tensor> values;
    for (int64_t rank = 0; rank < 3; ++rank) {
      std::vector<at::Tensor> rows;
      for (int64_t expert = 0; expert < 6; ++expert)
        for (int64_t i = 0; i < rowsByExpert[rank][expert]; ++i)
          rows.push_back(at::full(
              {1, 5}, double(1000 * group + 100 * rank + 10 * expert + i)));
      values.push_back(at::cat(rows, 0));
    }
    std::vector<at::Tensor> mine;
    std::vector<int32_t> own;
    for (int64_t expert = 2 * place; expert < 2 * place + 2; ++expert) {
      for (int64_t rank = 0; rank < 3; ++rank)
        mine.push_back(values[rank].narrow(
            0,
            std::accumulate(rowsByExpert[rank].begin(),
                            rowsByExpert[rank].begin() + expert, int64_t(0)),
            rowsByExpert[rank][expert]));
      own.push_back(static_cast<int32_t>(at::cat(mine, 0).size(0)));
    }
    const at::Tensor expected = at::cat(mine, 0);
    const at::Tensor sent =
        call(ExchangeKind::Dispatch, 9).run(values[place], ends);
    double difference = 0;
    if (sent.size(0) != 9 ||
        !at::equal(sent.narrow(0, 0, expected.size(0)), expected))
      difference += 1;
    if (!at::equal(call(ExchangeKind::Combine, 6).run(sent, ends),
                   values[place]))
      difference += 10;
    if (!at::equal(call(ExchangeKind::ExpertEnds, 8).run(ends, ends),
                   at::tensor(own, at::kInt)))
      difference += 100;
    // Started, with another exchange between, they give the same; the ends may
    // change once they are read.
    auto started = [&](ExchangeKind kind, int64_t rows,
                       const at::Tensor &from) {
      run::ExchangeCall each = call(kind, rows);
      const std::vector<int64_t> sizes = plan::exchangeBuffers(
          each.description(), from.sizes().vec(), 3, /*contiguous=*/true,
          /*cpu=*/true);
      at::Tensor read = ends.clone();
      const std::vector<at::Tensor> made = each.start(
          from, sizes,
          [](const std::function<void()> &collective) { collective(); }, read);
      read.zero_();
      run::ExchangeCall sum(make(ExchangeKind::AllReduce), false, groups,
                            at::kCPU);
      if (sum.run(at::full({3}, 1.0 + place))[1].item<double>() != 6)
        difference += 1e5;
      each.finish(from, made);
      return made.front();
    };
    const at::Tensor later = started(ExchangeKind::Dispatch, 9, values[place]);
    if (!at::equal(later.narrow(0, 0, expected.size(0)), expected))
      difference += 1e6;
    if (!at::equal(started(ExchangeKind::Combine, 6, later), values[place]))
      difference += 1e7;
    // Rank 1 receives eight rows, and every rank finds that seven are too few.
    try {
      call(ExchangeKind::ExpertEnds, 7).run(ends, ends);
      difference += 1000;
    } catch (const run::RowsError &error) {
      if (std::string(error.what()) !=
          "8 rows go to the experts of rank 1 of 'tp', and the plan has a "
          "place for 7; plan with expert_imbalance of at least 1.34")
        difference += 10000;
    }
    return std::vector<double>{difference};
  });
  for (const std::vector<double> &rank : wrong)
    EXPECT_EQ(rank, std::vector<double>{0});
}

TEST(RuntimeExchange, GivesWhatOneProcessComputes) {
  const plan::Plan plan = mesh();
  const auto wrong = onRanks(plan, [&](run::Groups &groups) {
    std::vector<double> differences;
    const int place = groups.mesh().position({"tp"});
    const int64_t group = groups.mesh().position({"dp_shard"});
    for (at::ScalarType dtype : {at::kFloat, at::kBFloat16})
      for (const Case &test : cases) {
        std::vector<at::Tensor> values;
        for (int other = 0; other < 3; ++other)
          values.push_back(valueOf(other, group, dtype));
        // As an operator may leave it: not contiguous.
        at::Tensor own =
            values[place].transpose(0, 2).contiguous().transpose(0, 2);
        run::ExchangeCall call(test.exchange, false, groups, at::kCPU);
        const at::Tensor got = call.run(own);
        const at::Tensor want = test.expected(values, place);
        // Sums of three numbers below 10,000: exact in 32 bits.
        const double scale = dtype == at::kFloat ? 0 : 0.02 * 9000;
        differences.push_back(
            got.sizes() == want.sizes() && got.is_contiguous() &&
                    got.scalar_type() == dtype &&
                    (got - want).abs().max().item<double>() <= scale
                ? 0
                : 1);
      }
    return differences;
  });
  for (size_t rank = 0; rank < wrong.size(); ++rank)
    for (size_t i = 0; i < wrong[rank].size(); ++i)
      EXPECT_EQ(wrong[rank][i], 0)
          << cases[i % std::size(cases)].name << " on rank " << rank;
}

/// Two of each are under way at once, and one that is not started comes
/// between.
TEST(RuntimeExchange, StartedOnesGiveTheSame) {
  const plan::Plan plan = mesh();
  const auto wrong = onRanks(plan, [&](run::Groups &groups) {
    std::vector<double> differences;
    const int place = groups.mesh().position({"tp"});
    const int64_t group = groups.mesh().position({"dp_shard"});
    run::ExchangeCall between(make(ExchangeKind::AllReduce), false, groups,
                              at::kCPU);
    for (const Case &test : cases)
      for (bool contiguous : {true, false}) {
        if (!plan::canStart(test.exchange.kind))
          continue;
        std::vector<at::Tensor> values;
        for (int other = 0; other < 3; ++other)
          values.push_back(valueOf(other, group, at::kFloat));
        at::Tensor own = values[place];
        if (!contiguous)
          own = own.transpose(0, 2).contiguous().transpose(0, 2);
        const std::vector<int64_t> sizes = plan::exchangeBuffers(
            test.exchange, {2, 6, 3}, 3, contiguous, /*cpu=*/true);
        std::vector<std::unique_ptr<run::ExchangeCall>> calls;
        std::vector<std::vector<at::Tensor>> made;
        int queued = 0;
        for (int i = 0; i < 2; ++i) {
          calls.push_back(std::make_unique<run::ExchangeCall>(
              test.exchange, false, groups, at::kCPU));
          made.push_back(calls[i]->start(
              own, sizes, [&](const std::function<void()> &collective) {
                ++queued;
                collective();
              }));
        }
        const at::Tensor sum = between.run(at::full({3}, 1.0 + place));
        const at::Tensor want = test.expected(values, place);
        bool right = queued == 2 && sum[1].item<double>() == 6;
        for (int i : {1, 0}) {
          calls[i]->finish(own, made[i]);
          right &= made[i].size() == sizes.size() + 1 &&
                   at::equal(made[i][0], want) && made[i][0].is_contiguous();
        }
        differences.push_back(right ? 0 : 1);
      }
    return differences;
  });
  for (size_t rank = 0; rank < wrong.size(); ++rank)
    for (size_t i = 0; i < wrong[rank].size(); ++i)
      EXPECT_EQ(wrong[rank][i], 0) << "case " << i << " on rank " << rank;
}

TEST(RuntimeExchange, ReducesInPlaceAndCountsItsPlace) {
  const plan::Plan plan = mesh();
  const auto right = onRanks(plan, [&](run::Groups &groups) {
    at::Tensor value = at::full({4}, 2.0);
    run::ExchangeCall sum(make(ExchangeKind::AllReduce), true, groups,
                          at::kCPU);
    const at::Tensor result = sum.run(value);
    plan::Exchange place = make(ExchangeKind::Coordinate);
    place.step = 16;
    run::ExchangeCall coordinate(place, false, groups, at::kCPU);
    return std::vector<double>{
        result.data_ptr() == value.data_ptr() ? 1.0 : 0.0,
        value[3].item<double>(), coordinate.run(at::Tensor()).item<double>()};
  });
  for (size_t rank = 0; rank < right.size(); ++rank)
    EXPECT_EQ(right[rank],
              (std::vector<double>{1, 6, 16.0 * static_cast<double>(rank % 3)}))
        << rank;
}

/// Sums of what all ranks exchange in pieces of a few elements and of many,
/// whole, uneven and round, and how many peers this rank reads.
std::vector<double> exchanged(run::Groups &groups) {
  run::Communicator &all = *groups.world();
  const int own = all.rank(), size = all.size();
  std::vector<double> result;
  for (int round = 0; round < 3; ++round)
    for (const int64_t piece : {3, 1 << 15}) {
      at::Tensor gathered = at::zeros({piece * size});
      at::Tensor mine = at::full({piece}, own + 1.0 + round);
      run::Pending first = all.allGather(gathered, mine);
      at::Tensor received = at::zeros({piece * size});
      at::Tensor sent = at::arange(piece * size, at::kFloat) * (own + 1.0);
      run::Pending second = all.exchangeParts(received, sent);
      first.wait();
      second.wait();
      at::Tensor passed = at::zeros({piece});
      all.permute(passed, mine, 1).wait();
      std::vector<int64_t> counts, gets;
      for (int peer = 0; peer < size; ++peer) {
        counts.push_back(piece * peer); // nothing to the first
        gets.push_back(piece * own);
      }
      at::Tensor uneven = at::zeros({piece * own * size});
      at::Tensor given = at::full({piece * size * (size - 1) / 2}, own + 1.0);
      all.exchangeUneven(uneven, given, gets, counts).wait();
      for (const at::Tensor &tensor : {gathered, received, passed, uneven})
        result.push_back(tensor.sum(at::kDouble).item<double>());
    }
  result.push_back(all.peersRead());
  return result;
}

/// Containers can forbid process_vm_readv altogether.
bool kernelPermitsReading() {
  int number = 1, read = 0;
  const pid_t child = fork();
  if (child == 0) {
    pause();
    _exit(0);
  }
  const iovec to{&read, sizeof(read)}, from{&number, sizeof(number)};
  const bool permits =
      process_vm_readv(child, &to, 1, &from, 1, 0) == sizeof(read);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  return permits;
}

TEST(RuntimeExchange, ReadsInTheMemoryOfPeersWhatIsSentOtherwise) {
  const plan::Plan plan = mesh();
  auto by = [&](int64_t leastBytes) {
    accel::run::setLeastPeerBytes(leastBytes);
    return onRanks(plan, exchanged);
  };
  auto sent = by(0), read = by(1), largeRead = by(65536);
  const double others =
      kernelPermitsReading() ? static_cast<double>(plan.ranks() - 1) : 0;
  for (size_t rank = 0; rank < sent.size(); ++rank) {
    ASSERT_FALSE(sent[rank].empty());
    EXPECT_EQ(sent[rank].back(), 0);
    EXPECT_EQ(read[rank].back(), others);
    sent[rank].back() = others;
  }
  EXPECT_EQ(sent, read);
  EXPECT_EQ(sent, largeRead);
}

} // namespace
