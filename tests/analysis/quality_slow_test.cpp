// AStitch's count of memory kernels against the fewest possible; docs/planners/quality.md has the rules that
// keep the exceptions from it.
#include <gtest/gtest.h>

#include "analysis/explain/quality.h"
#include "tests/support/graphs.h"

namespace stitchwork {
namespace TEST_FILE {

struct Case {
  const char* dataset;
  double most = 1.15;  ///< kernels to the bound
};

class QualityOf : public ::testing::TestWithParam<Case> {};

TEST_P(QualityOf, KernelsAreNearTheFewestPossible) {
  const auto [name, most] = GetParam();
  const Quality q = quality(testing::dataset(name), device("v100"), {.knobs = {{"mapping", "paper"}}});
  EXPECT_GE(q.ratio, 1.0) << "the bound is no bound: " << to_text(q.bound);
  EXPECT_LE(q.ratio, most) << q.kernels.at("astitch") << " kernels; " << to_text(q.bound);
}

INSTANTIATE_TEST_SUITE_P(Near, QualityOf,
                         ::testing::Values(Case{"fig5"}, Case{"fig7"}, Case{"softmax"}, Case{"layer_norm"},
                                           Case{"layer_norm_grad"}, Case{"layer_norm_grad_tiny"},
                                           Case{"attention"}, Case{"rotary"}, Case{"rotary_interleaved"},
                                           Case{"remote_trap"}, Case{"mlp_training"}, Case{"adam_200"},
                                           Case{"bert_base"}, Case{"decoder_layer"}, Case{"asr_layer"},
                                           Case{"dien"}, Case{"crnn_tiny"}, Case{"gpt2_training"},
                                           Case{"asr"}, Case{"transformer"}, Case{"bert_train"},
                                           Case{"llama_decode"}, Case{"vit_b16"}, Case{"unet_block"},
                                           Case{"moe_layer"}, Case{"crnn"}, Case{"gpt2_step"},
                                           Case{"asr_fp16"}),
                         [](const auto& info) { return std::string(info.param.dataset); });
INSTANTIATE_TEST_SUITE_P(Exceptions, QualityOf, ::testing::Values(Case{"adam_step", 5.0}),
                         [](const auto& info) { return std::string(info.param.dataset); });

}  // namespace TEST_FILE
}  // namespace stitchwork
