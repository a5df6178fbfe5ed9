// Every row's values against NumPy's (and SciPy's, JAX's where NumPy has none), stored in tests/data/numpy_values.txt.
#include "values.hpp"
#include "support/source_folder.hpp"

namespace tandem::testing {
namespace {

const std::map<std::string, std::vector<Expected>>& stored() {
  static const auto values = read_values(test::source_file("tests/data/numpy_values.txt"));
  return values;
}

class RowValues : public ::testing::TestWithParam<std::string> {};

TEST_P(RowValues, AgreeWithNumPy) {
  const ir::OpDef& op = ops::table().at(GetParam());
  int compared = 0, wanted = 0;
  for_each_sample(
      op, [&](const ir::Sample& s, const std::vector<DType>& types, const std::vector<ir::Literal>& in, const std::string& what) {
        if (!compared_with_numpy(s, types)) return;
        ++wanted;
        const auto it = stored().find(call_key(op, s, types, in));
        ASSERT_NE(it, stored().end()) << what << ": no stored value; run tools/numpy_values.py";
        const auto got = run_eager(engine_on("cpu"), op, s.attrs, in);
        ASSERT_EQ(got.size(), it->second.size()) << what;
        ++compared;
        for (size_t k = 0; k < got.size(); ++k) {
          const Expected& e = it->second[k];
          ASSERT_EQ(got[k].shape.str(), e.shape) << what << ": result " << k;
          ASSERT_EQ(std::string(name(got[k].dtype)), e.dtype) << what << ": result " << k;
          ASSERT_EQ(count(got[k]), e.values.size()) << what << ": result " << k;
          for (size_t i = 0; i < e.values.size(); ++i)
            ASSERT_TRUE(matches(got[k], i, e.values[i], closeness(op, got[k].dtype))) << what << ": result " << k << ", element " << i;
        }
      });
  if (wanted == 0) GTEST_SKIP() << "no sample is compared with NumPy: see the row";
  EXPECT_EQ(compared, wanted);
}

INSTANTIATE_TEST_SUITE_P(Table, RowValues, ::testing::ValuesIn(row_names()), [](const auto& i) { return i.param; });

}  // namespace
}  // namespace tandem::testing
