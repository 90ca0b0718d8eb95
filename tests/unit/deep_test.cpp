// remote check --deep: how it judges imports of torch.

#include "project/check/deep.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "servers/deep.hpp"

namespace remote::project {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const std::string end = "remote-deep {\"kind\": \"end\"}\n";

// These messages as lines, without the end marker.
std::string print(std::initializer_list<std::string> messages) {
  std::string lines;
  for (const std::string& json : messages) {
    lines += "remote-deep " + json + "\n";
  }
  return lines;
}

ImportFacts read(const std::string& lines) {
  return servers::read_import(lines + end);
}

std::string message_of(const std::string& lines) {
  try {
    servers::read_import(lines);
  } catch (const Error& error) {
    return error.message();
  }
  return "";
}

ServerCheck server(const std::string& name, const ImportFacts& import, std::size_t gpus = 0) {
  ServerCheck made{name};
  made.facts.emplace();
  made.facts->torch = "2.6.0";
  made.facts->imported = import;
  made.facts->gpus.gpus.resize(gpus);
  return made;
}

const std::string good = print(
    {R"({"kind": "torch", "version": "2.6.0+cu124", "took": 1500})",
     R"({"kind": "devices", "count": 2, "cuda": "12.4"})", R"({"kind": "nccl", "version": "2.21.5"})",
     R"({"kind": "library", "digest": "00112233aabbccdd", "size": 1000, "path": "/e/site-packages/nvidia/nccl/lib/libnccl.so.2"})",
     R"({"kind": "library", "digest": "1111111111111111", "size": 2000, "path": "/e/site-packages/torch/lib/libtorch.so"})"});

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
  for (const char* json :
       {R"({"kind":"torch"})", R"({"kind":"torch","version":"2.6","took":"x"})",
        R"({"kind":"torch","version":"","took":1})", R"({"kind":"torch","version":"2 6","took":1})",
        R"({"kind":"devices","count":-1,"cuda":"12"})", R"({"kind":"devices","count":1025,"cuda":"12"})",
        R"({"kind":"library","digest":"zz;x","size":1,"path":"/a.so"})",
        R"({"kind":"library","digest":"","size":1,"path":"/a.so"})",
        R"({"kind":"library","digest":"00","size":-1,"path":"/a.so"})",
        R"({"kind":"library","digest":"00","size":1,"path":"/a/"})", R"({"kind":"what"})",
        R"({"kind":"end","more":1})", "", "end"}) {
    EXPECT_THAT(message_of(print({json}) + end), HasSubstr("not understood")) << json;
  }
  std::string endless;
  for (int i = 0; i < 2000; ++i) {
    endless += print({R"({"kind":"library","digest":"00","size":1,"path":"/x/lib.so"})"});
  }
  EXPECT_THAT(read(endless).libraries, SizeIs(2000));
  endless += print({R"({"kind":"library","digest":"00","size":1,"path":"/x/lib.so"})"});
  EXPECT_THAT(message_of(endless + end), HasSubstr("'library' is one too many"));
}

TEST(DeepAnswer, ThatIsIncompleteIsRefused) {
  EXPECT_THAT(message_of(good), HasSubstr("its closing line is missing"));
  EXPECT_THAT(message_of(good + end.substr(0, end.size() - 1)), HasSubstr("its closing line is missing"));
  EXPECT_THAT(message_of(good + end + "remote-deep {"), HasSubstr("cut short"));
  EXPECT_THAT(message_of(good + end + end), HasSubstr("'message' follows the end"));
  EXPECT_THAT(message_of("hello\n"), HasSubstr("its login shell ended"));
  EXPECT_THAT(message_of("hello\n"), HasSubstr("it printed: hello"));
  EXPECT_THAT(message_of(""), HasSubstr("its login shell ended"));
}

TEST(DeepAnswer, HasNoControlCharacters) {
  const auto read_text = [](const std::string& kind) {
    return read(print({R"({"kind":")" + kind + R"(","reason":"\u001b[31mred\n\udcff"})"}));
  };
  EXPECT_EQ(read_text("failed").error, "\\x1b[31mred\\n\\xff");
  EXPECT_EQ(read_text("trouble").trouble, "\\x1b[31mred\\n\\xff");
  const ImportFacts facts =
      read(print({R"({"kind":"library","digest":"0","size":1,"path":"/a\u001b/b\u0007.so"})"}));
  EXPECT_EQ(facts.libraries.at(0).path, "/a\\x1b/b\\x07.so");
  // raw control characters are not valid JSON
  EXPECT_THAT(message_of(print({"{\"kind\":\"failed\",\"reason\":\"\x1b[31mred\"}"}) + end),
              HasSubstr("\\x1b"));
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
  const std::string twice =
      good +
      print({R"({"kind":"library","digest":"33","size":1,"path":"/usr/local/cuda/lib64/libnccl.so.2"})"});
  report.servers = {server("a", read(twice), 2)};
  const auto findings = deep_findings(report)[0];
  ASSERT_THAT(findings, SizeIs(2));
  EXPECT_EQ(findings[1].name, "libraries");
  EXPECT_THAT(findings[1].detail, HasSubstr("libnccl.so.2 is loaded 2 times: /e/site-packages"));
}

TEST(DeepFindings, TorchThatDoesNotComeUpOrSeesNoGpuFails) {
  CheckReport report;
  report.servers = {
      server("a",
             read(print({R"({"kind":"failed","reason":"ImportError: libcublas.so.12: no such file"})"}))),
      server("b",
             read(print({R"({"kind":"torch","version":"2.6.0","took":900})",
                         R"({"kind":"devices","count":0,"cuda":"-"})"})),
             8),
      server("c",
             read(print({R"({"kind":"torch","version":"2.6.0","took":900})",
                         R"({"kind":"trouble","reason":"RuntimeError: busy"})"})),
             8),
      server("d", read(print({R"({"kind":"failed","reason":"ModuleNotFoundError: no torch"})"}))),
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
