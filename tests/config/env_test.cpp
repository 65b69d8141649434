#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/registry.h"
#include "config_files.h"
#include "support/errors.h"

namespace harness::config {
namespace {

using EnvMap = std::map<std::string, std::string>;
using ::testing::HasSubstr;

const std::string rest = "model: gpt3-125m\nbackend: cuda\n";

TEST(Env, AChangeReplacesOrAddsOnlyWhatItNames) {
  const std::string text = rest +
                           "baseline: {env: {NCCL_IB_TIMEOUT: 22, FLAG: true}}\n"
                           "sweep:\n  env:\n    - {NCCL_IB_TIMEOUT: 20}\n    - {LD_PRELOAD: \"/a b.so\"}\n";
  const Experiment e = test::loaded(text);
  EXPECT_EQ(e.baseline.env, (EnvMap{{"FLAG", "true"}, {"NCCL_IB_TIMEOUT", "22"}}));
  ASSERT_EQ(e.changes.size(), 2u);
  EXPECT_EQ(e.changes[0].value, "{FLAG: true, NCCL_IB_TIMEOUT: 20}");
  EXPECT_EQ(e.changes[1].settings.env,
            (EnvMap{{"FLAG", "true"}, {"LD_PRELOAD", "/a b.so"}, {"NCCL_IB_TIMEOUT", "22"}}));
  const Experiment set = test::loaded(text, {"env.NCCL_IB_TIMEOUT=18", "env={MORE: 'x: y'}"});
  EXPECT_EQ(set.baseline.env, (EnvMap{{"FLAG", "true"}, {"MORE", "x: y"}, {"NCCL_IB_TIMEOUT", "18"}}));
  EXPECT_EQ(test::complaint_about(rest + "baseline: {env: {}}\n"), "");
}

TEST(Env, ProblemsHaveThePlaceOfTheirEntry) {
  const std::string message = test::complaint_about(rest +
                                                    "baseline:\n  env:\n    NCCL_LL_BUFFSIZE: 4M\n    NCCL_ALGO: Ring\n"
                                                    "    \"A: 1, B\": 2\n    LIST: [1]\nsweep: {env: [3]}\n");
  for (const char* expected :
       {"a.yaml:5:23: baseline.env.NCCL_LL_BUFFSIZE: found '4M'", "read this as 4",
        "a.yaml:6:16: ", "NCCL_ALGO is set by the variable nccl_algo", "a.yaml:7:", "letters, digits and '_'",
        "a.yaml:8:11: baseline.env.LIST: found a list", "a.yaml:9:15: sweep.env[0]: found '3'"}) {
    EXPECT_THAT(message, HasSubstr(expected)) << expected;
  }
}

std::string refusal(const std::string& name, const std::string& value = "1") {
  return test::error_of([&] { check_env_entry(name, value); });
}

TEST(Env, NamesOfOthersAreRefused) {
  for (const Variable& v : registry()) {
    if (v.environment_name.empty()) continue;
    EXPECT_THAT(refusal(v.environment_name), HasSubstr("the variable " + v.name)) << v.environment_name;
    EXPECT_THAT(refusal(v.name), HasSubstr("a variable of harness")) << v.name;
  }
  for (const char* name : {"HARNESS_RANK", "OMPI_MCA_btl", "SLURM_JOB_ID", "PMIX_RANK", "CUDA_VISIBLE_DEVICES",
                           "NCCL_HOSTID", "NCCL_COMM_ID", "NCCL_DEBUG", "OMP_NUM_THREADS", "", "A B", "1A", "A=B"}) {
    EXPECT_NE(refusal(name), "") << name;
  }
  EXPECT_THAT(refusal("NCCL_SHARP_ENABLE"), HasSubstr("nccl_collnet"));
  for (const char* name : {"NCCL_IB_TIMEOUT", "UCX_TLS", "OMP_WAIT_POLICY", "LD_PRELOAD", "NCCL_FASTRAK_NUM_FLOWS",
                           "NCCL_SHARP_GROUP_SIZE_THRESH", "CUDA_DEVICE_MAX_CONNECTIONS", "_x", "NCCL_IB_TIMEOT",
                           "NCCL_OF_A_LATER_VERSION", "NCCL_VERSION", "NCCL_BLOCKING_WAIT", "TORCH_NCCL_TRACE"}) {
    EXPECT_EQ(refusal(name), "") << name;
  }
}

TEST(Env, NamesThatNcclDoesNotReadAreWarnedOf) {
  EXPECT_THAT(env_warning("NCCL_IB_TIMEOT"), HasSubstr("did you mean NCCL_IB_TIMEOUT?"));
  EXPECT_THAT(env_warning("NCCL_OF_A_LATER_VERSION"), HasSubstr("passed on as it is"));
  EXPECT_THAT(env_warning("NCCL_ASYNC_ERROR_HANDLING"), HasSubstr("belongs to PyTorch"));
  EXPECT_THAT(env_warning("NCCL_VERSION"), HasSubstr("belongs to container images"));
  EXPECT_THAT(env_warning("NCCL_OFI_NTHREADS"), HasSubstr("belongs to the plug-in aws-ofi-nccl"));
  for (const char* fine : {"NCCL_IB_TIMEOUT", "NCCL_TUNER_PLUGIN", "OFI_NCCL_PROTOCOL", "UCX_TLS", "PATH", "NCCL"}) {
    EXPECT_EQ(env_warning(fine), "") << fine;
  }
}

TEST(Env, IntegersOfNcclAreIntegers) {
  EXPECT_EQ(refusal("NCCL_LL_BUFFSIZE", "524288"), "");
  EXPECT_EQ(refusal("NCCL_LL_BUFFSIZE", "0x80000"), "");
  EXPECT_EQ(refusal("NCCL_NET_GDR_READ", "-2"), "");
  EXPECT_THAT(refusal("NCCL_LL_BUFFSIZE", "4M"), HasSubstr("read this as 4"));
  EXPECT_THAT(refusal("NCCL_SHM_DISABLE", "on"), HasSubstr("read this as 0"));
  EXPECT_THAT(refusal("NCCL_CTA_POLICY", "ZERO"), HasSubstr("read this as 0"));
  EXPECT_THAT(refusal("NCCL_LL_BUFFSIZE", "010"), HasSubstr("read this as 8"));
  EXPECT_THAT(refusal("NCCL_LL_BUFFSIZE", ""), HasSubstr("its default"));
  EXPECT_THAT(refusal("NCCL_LL_BUFFSIZE", "99999999999999999999"), HasSubstr("does not fit in 64 bits"));
  EXPECT_THAT(refusal("NCCL_TOPO_FILE", ""), HasSubstr("its default"));
  EXPECT_EQ(refusal("NCCL_TOPO_FILE", "/etc/topology.xml"), "");
  EXPECT_EQ(refusal("OTHER", "4M"), "");
  EXPECT_THAT(refusal("OTHER", "a\nb"), HasSubstr("control characters"));
}

TEST(Env, TextComesBackAsItWas) {
  const Variable& row = *find_variable("env");
  const auto parsed = [&](const std::string& text) {
    Settings s;
    row.parse(s, text);
    return s.env;
  };
  Settings odd;
  odd.env = {{"A", ""}, {"B", "x, y}"}, {"C", "\\\"q\\"}, {"D", "/a:/b=c"}, {"E", " "}, {"F", "ü"}};
  EXPECT_EQ(parsed(row.print(odd)), odd.env);
  EXPECT_EQ(parsed(" { A : 1 ,B: \"2\" } "), (EnvMap{{"A", "1"}, {"B", "2"}}));
  for (const char* bad : {"", "{", "}", "{A}", "{A:}", "{A: 1", "{A: 1,}", "{A: \"1}", "{A: 1} x", "{: 1}", "A: 1",
                          "{A: 1, A: 2}", "{A: x\"y}", "[A]"}) {
    EXPECT_THROW(parsed(bad), Error) << bad;
  }
}

}  // namespace
}  // namespace harness::config
