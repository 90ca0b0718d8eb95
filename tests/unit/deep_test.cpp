// remote check --deep: what it makes of imports of torch.

#include "project/check/deep.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "servers/action.hpp"
#include "servers/deep.hpp"

namespace remote::project {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

ImportFacts read(const std::string& lines) {
  return servers::read_answer<servers::DeepAnswer>(lines).facts;
}

ServerCheck server(const std::string& name, const ImportFacts& import, std::size_t gpus = 0) {
  ServerCheck made{name};
  made.facts.emplace();
  made.facts->torch = "2.6.0";
  made.facts->imported = import;
  made.facts->gpus.gpus.resize(gpus);
  return made;
}

const std::string good =
    "@remote1 deep torch 2.6.0+cu124 1500\n@remote1 deep devices 2 12.4\n@remote1 deep nccl 2.21.5\n"
    "@remote1 deep library 00112233aabbccdd 1000 /e/site-packages/nvidia/nccl/lib/libnccl.so.2\n"
    "@remote1 deep library 1111111111111111 2000 /e/site-packages/torch/lib/libtorch.so\n@remote1 end\n";

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  return text.replace(text.find(what), what.size(), by);
}

TEST(DeepAnswer, IsRead) {
  const ImportFacts facts = read("a greeting\n" + good);
  EXPECT_EQ(facts.torch, "2.6.0+cu124");
  EXPECT_EQ(facts.took, std::chrono::milliseconds(1500));
  EXPECT_EQ(facts.devices, 2);
  EXPECT_EQ(facts.nccl, "2.21.5");
  ASSERT_THAT(facts.libraries, SizeIs(2));
  EXPECT_EQ(facts.libraries[0].name, "libnccl.so.2");
  EXPECT_EQ(facts.libraries[0].size, 1000U);
}

TEST(DeepAnswer, OfAnotherFormIsRefused) {
  for (const char* line :
       {"deep torch", "deep torch 2.6 x", "deep devices -1 12", "deep library zz;x 1 /a.so",
        "deep library 00 -1 /a.so", "deep library 00 1 /a/", "deep what", "other x"}) {
    EXPECT_THROW(read("@remote1 " + std::string(line) + "\n@remote1 end\n"), Error) << line;
  }
  EXPECT_THROW(read("@remote1 deep torch 2.6 1\n"), Error);  // cut short
  std::string endless;
  for (int i = 0; i < 3000; ++i) {
    endless += "@remote1 deep library 00 1 /x/lib.so\n";
  }
  EXPECT_THROW(read(endless + "@remote1 end\n"), Error);
  EXPECT_THAT(read("@remote1 deep failed \x1b[31mred\n@remote1 end\n").error, Not(HasSubstr("\x1b")));
}

TEST(DeepFindings, AHealthyClusterGetsOnlyOk) {
  CheckReport report;
  report.servers = {server("a", read(good), 2), server("b", read(good), 2)};
  for (const auto& findings : deep_findings(report)) {
    ASSERT_THAT(findings, SizeIs(2));
    for (const Finding& finding : findings) {
      EXPECT_EQ(finding.status, CheckStatus::ok) << finding.name;
    }
  }
}

TEST(DeepFindings, AnotherFileOfOneNameIsNamed) {
  CheckReport report;
  const std::string odd = replaced(good, "00112233aabbccdd", "ffffffffffffffff");
  report.servers = {server("a", read(good), 2), server("b", read(odd), 2), server("c", read(good), 2)};
  const auto findings = deep_findings(report);
  EXPECT_EQ(findings[0].back().status, CheckStatus::ok);
  EXPECT_EQ(findings[1].back().name, "same-libraries");
  EXPECT_EQ(findings[1].back().status, CheckStatus::fail);
  EXPECT_THAT(findings[1].back().detail, HasSubstr("libnccl.so.2 is loaded from another file"));
  EXPECT_EQ(findings[1].back().fix->text, "remote prepare --force --server b");
  const std::string other = replaced(good, "1111111111111111", "2222222222222222");
  report.servers[1] = server("b", read(other), 2);
  EXPECT_EQ(deep_findings(report)[1].back().status, CheckStatus::warn);
}

TEST(DeepFindings, OneLibraryFromTwoPlacesIsNamed) {
  CheckReport report;
  const std::string twice = replaced(
      good, "@remote1 end", "@remote1 deep library 33 1 /usr/local/cuda/lib64/libnccl.so.2\n@remote1 end");
  report.servers = {server("a", read(twice), 2)};
  const auto findings = deep_findings(report)[0];
  ASSERT_THAT(findings, SizeIs(2));
  EXPECT_EQ(findings[1].name, "libraries");
  EXPECT_THAT(findings[1].detail, HasSubstr("libnccl.so.2 is loaded 2 times: /e/site-packages"));
}

TEST(DeepFindings, TorchThatDoesNotComeUpOrSeesNoGpuFails) {
  CheckReport report;
  report.servers = {
      server("a", read("@remote1 deep failed ImportError: libcublas.so.12: no such file\n@remote1 end\n")),
      server("b", read("@remote1 deep torch 2.6.0 900\n@remote1 deep devices 0 -\n@remote1 end\n"), 8),
      server("c",
             read("@remote1 deep torch 2.6.0 900\n@remote1 deep trouble RuntimeError: busy\n@remote1 end\n"),
             8),
      server("d", read("@remote1 deep failed ModuleNotFoundError: no torch\n@remote1 end\n")),
      ServerCheck{"e"}};
  report.servers[3].facts->torch = "";
  const auto findings = deep_findings(report);
  EXPECT_EQ(findings[0][0].status, CheckStatus::fail);
  EXPECT_THAT(findings[0][0].detail, HasSubstr("libcublas.so.12"));
  EXPECT_THAT(findings[1][0].detail, HasSubstr("sees none of the 8 GPUs: it was built without CUDA"));
  EXPECT_THAT(findings[2][0].detail, HasSubstr("busy"));
  EXPECT_EQ(findings[3][0].status, CheckStatus::skip);
  EXPECT_THAT(findings[4], IsEmpty());
}

}  // namespace
}  // namespace remote::project
