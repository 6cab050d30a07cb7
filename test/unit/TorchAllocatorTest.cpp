//===- TorchAllocatorTest.cpp - The replay beside torch's allocator -------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Runs random orders of tensors through c10's own CUDACachingAllocator, over a
// device that FakeCuda.cpp makes up, and through the replay: every statistic
// must be equal after every event.
//
//===----------------------------------------------------------------------===//
#include "passes/Replay/CachingAllocator.h"
#include "test/unit/FakeCuda.h"

#include <c10/core/AllocatorConfig.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/PeerToPeerAccess.h>
#include <c10/util/Flags.h>
#include <gtest/gtest.h>

#include <random>

C10_DECLARE_int(caffe2_log_level);

// libtorch_cuda tells c10 of the driver's contexts through this.
namespace c10::cuda::_internal {
void setHasPrimaryContext(bool (*)(c10::DeviceIndex));
}

using namespace accel::replay;
namespace torchAllocator = c10::cuda::CUDACachingAllocator;

namespace {

constexpr int64_t mebi = int64_t(1) << 20;

class TorchAllocator : public testing::Test {
protected:
  static void SetUpTestSuite() {
    c10::cuda::_internal::setHasPrimaryContext(
        [](c10::DeviceIndex) { return true; });
    FLAGS_caffe2_log_level = 2; // it warns whenever a device is full
    torchAllocator::init(1);
    c10::cuda::detail::init_p2p_access_cache(1);
  }

  struct Tensor {
    int block;
    void *pointer;
  };

  static void expectEqual(const CachingAllocator &ours, const char *what) {
    using c10::CachingAllocator::StatType;
    const auto theirs = torchAllocator::getDeviceStats(0);
    const auto all = static_cast<size_t>(StatType::AGGREGATE);
    const AllocatorStatistics &s = ours.statistics();
    ASSERT_EQ(s.allocatedBytes, theirs.allocated_bytes[all].current) << what;
    ASSERT_EQ(s.allocatedPeak, theirs.allocated_bytes[all].peak) << what;
    ASSERT_EQ(s.reservedBytes, theirs.reserved_bytes[all].current) << what;
    ASSERT_EQ(s.reservedPeak, theirs.reserved_bytes[all].peak) << what;
    ASSERT_EQ(s.retries, theirs.num_alloc_retries) << what;
  }

  /// Sizes as training has them: many alike, of all magnitudes.
  static int64_t drawSize(std::mt19937 &random, int64_t largest) {
    const int kind = static_cast<int>(random() % 6);
    auto upTo = [&](int64_t most) {
      return static_cast<int64_t>(random() % static_cast<uint64_t>(most)) + 1;
    };
    switch (kind) {
    case 0:
      return upTo(4096);
    case 1:
      return upTo(mebi);
    case 2:
      return mebi << (random() % 5); // the same sizes again and again
    case 3:
      return upTo(10 * mebi);
    case 4:
      return 24 * mebi;
    default:
      return upTo(largest);
    }
  }

  void compare(const std::string &conf, int64_t capacity, uint32_t seed,
               int events, int64_t largest = 200 * mebi) {
    torchAllocator::emptyCache();
    torchAllocator::resetPeakStats(0);
    torchAllocator::resetAccumulatedStats(0);
    fakeCuda().capacityBytes = capacity;
    c10::CachingAllocator::setAllocatorSettings(
        conf.starts_with("expandable") ? conf
                                       : "expandable_segments:False," + conf);
    AllocatorRules rules;
    bool unsupported = false;
    ASSERT_EQ(readAllocatorRules(conf, rules, unsupported), "");
    rules.capacityBytes = capacity;
    CachingAllocator ours(rules);
    std::vector<Tensor> live;
    std::mt19937 random(seed);
    int full = 0;
    for (int i = 0; i < events; ++i) {
      // Waves: what grows in one half of the time shrinks in the other.
      const bool growing = (i / 64) % 2 == 0;
      const bool allocates =
          live.empty() || (random() % 10 < (growing ? 7 : 3));
      if (allocates) {
        const int64_t bytes = drawSize(random, largest);
        const int stream = static_cast<int>(random() % 8) / 5; // mostly 0
        void *pointer = nullptr;
        try {
          pointer = torchAllocator::raw_alloc_with_stream(
              static_cast<size_t>(bytes),
              reinterpret_cast<cudaStream_t>(static_cast<intptr_t>(stream)));
        } catch (const c10::OutOfMemoryError &) {
          ++full;
        }
        const int block = ours.allocate(bytes, stream);
        ASSERT_EQ(pointer != nullptr, block >= 0) << "event " << i;
        if (pointer)
          live.push_back({block, pointer});
      } else {
        // The latest most often, as a backward does.
        const size_t at =
            random() % 3 ? live.size() - 1 : random() % live.size();
        torchAllocator::raw_delete(live[at].pointer);
        ours.free(live[at].block);
        live.erase(live.begin() + static_cast<long>(at));
      }
      expectEqual(ours, (conf + " seed " + std::to_string(seed) + " event " +
                         std::to_string(i))
                            .c_str());
      if (HasFatalFailure())
        break;
    }
    for (const Tensor &tensor : live)
      torchAllocator::raw_delete(tensor.pointer);
    retries += ours.statistics().retries;
    refusals += full;
  }
  void TearDown() override {
    if (fakeCuda().capacityBytes == 0)
      return;
    EXPECT_GT(retries, 0) << "the device was never full";
    EXPECT_GT(refusals, 0);
  }
  int64_t retries = 0, refusals = 0;
};

TEST_F(TorchAllocator, SegmentsOfTheirOwn) {
  for (uint32_t seed = 0; seed < 20; ++seed)
    compare("", 0, seed, 2000);
}

TEST_F(TorchAllocator, SegmentsThatGrow) {
  for (uint32_t seed = 0; seed < 20; ++seed)
    compare("expandable_segments:True", 0, seed, 2000);
}

TEST_F(TorchAllocator, BlocksThatAreNotCut) {
  for (uint32_t seed = 0; seed < 10; ++seed)
    compare("max_split_size_mb:64", 0, seed, 2000);
}

TEST_F(TorchAllocator, SizesOfFewKinds) {
  for (uint32_t seed = 0; seed < 10; ++seed)
    compare("roundup_power2_divisions:8", 0, seed, 2000);
}

TEST_F(TorchAllocator, AFullDevice) {
  for (uint32_t seed = 0; seed < 10; ++seed)
    compare("", 700 * mebi, seed, 2000);
}

TEST_F(TorchAllocator, AFullDeviceWithSegmentsThatGrow) {
  for (uint32_t seed = 0; seed < 10; ++seed)
    compare("expandable_segments:True", 700 * mebi, seed, 2000);
}

TEST_F(TorchAllocator, AFullDeviceWithBlocksThatAreNotCut) {
  for (uint32_t seed = 0; seed < 10; ++seed)
    compare("max_split_size_mb:64", 700 * mebi, seed, 2000);
}

} // namespace
