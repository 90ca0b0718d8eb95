#include "launch/host_filter.hpp"

#include <numeric>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <remote/error.hpp>

#include "base/strings.hpp"

namespace remote::launch {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// "a b:0,2/2": names, GPUs, and the slots after a slash; "-" marks excluded GPUs.
std::string shown(const std::vector<LaunchHost>& hosts) {
  std::vector<std::string> words;
  for (const LaunchHost& host : hosts) {
    words.push_back(fmt::format("{}{}{}{}{}", host.name, host.gpus.empty() ? "" : ":",
                                host.without_gpus ? "-" : "", fmt::join(host.gpus, ","),
                                host.slots ? fmt::format("/{}", *host.slots) : ""));
  }
  return join(words, " ");
}
std::string included(const std::string& file, const std::string& text) {
  return shown(include_hosts(parse_hostfile(file, "hosts"), parse_host_filter(text, "--include")));
}
std::string excluded(const std::string& file, const std::string& text) {
  return shown(exclude_hosts(parse_hostfile(file, "hosts"), parse_host_filter(text, "--exclude")));
}
template <typename Call>
std::string filter_refusal(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    return error.message() + " (" + error.hint() + ")";
  }
  return "";
}

constexpr const char* workers = "worker-0 slots=4\nworker-1 slots=4\n";

TEST(HostFilter, TheExamplesOfDeepSpeed) {
  EXPECT_EQ(included(workers, "worker-0@worker-1:0,2"), "worker-0/4 worker-1:0,2/2");
  EXPECT_EQ(excluded(workers, "worker-1:0"), "worker-0/4 worker-1:-0/3");
  EXPECT_EQ(included(workers, "worker-1:0,1"), "worker-1:0,1/2");
  EXPECT_EQ(excluded(workers, "worker-0:0,1,2,3"), "worker-1/4") << "a server without a GPU takes no part";
}

TEST(HostFilter, TheOrderStaysThatOfTheHosts) {
  EXPECT_EQ(included("a\nb\nc\n", "c@a"), "a c");
  EXPECT_EQ(included("a\nb\n", "b:2@b:0,2"), "b:0,2/2");
  EXPECT_EQ(included("a\nb\n", "b:2@b"), "b");
  EXPECT_EQ(excluded("a\nb\nc\n", "b@c:1"), "a c:-1");
}

TEST(HostFilter, WhatIsWrongIsNamed) {
  for (const char* text : {"", "a@", "@a", ":0", "a:", "a:x", "a:0,", "a:-1", "a:0-2", "a:99999", "[]"}) {
    EXPECT_THAT(filter_refusal([&] { parse_host_filter(text, "--include"); }), HasSubstr("--include"))
        << text;
  }
  EXPECT_THAT(filter_refusal([] { included(workers, "worker-2"); }),
              HasSubstr("'worker-2' is not a server of this launch (there are worker-0, worker-1)"));
  EXPECT_THAT(filter_refusal([] { included(workers, "worker-1:4"); }),
              HasSubstr("there is no GPU 4 on worker-1 (hosts:2 says that it has 4 slots)"));
  EXPECT_THAT(filter_refusal([] { excluded(workers, "worker-0@worker-1"); }), HasSubstr("no server is left"));
  EXPECT_EQ(parse_host_filter("[fd00::1]:0@[fd00::2]", "--include").back().name, "fd00::2");
}

UsableGpus make_gpus(int count) {
  UsableGpus gpus;
  gpus.indices.resize(static_cast<std::size_t>(count));
  std::iota(gpus.indices.begin(), gpus.indices.end(), 0);
  gpus.there = gpus.indices;
  return gpus;
}

TEST(HostFilter, GpusAreThoseThatThereAre) {
  const auto gpus = [](const char* text, bool exclude, int there, const std::vector<int>& allowed) {
    LaunchHost host = parse_host_filter(text, "--include").front();
    host.without_gpus = exclude;
    return gpus_of(host, make_gpus(there), allowed);
  };
  EXPECT_THAT(gpus("b:2,0", false, 4, {}), ElementsAre(0, 2));
  EXPECT_THAT(gpus("b:0", true, 4, {}), ElementsAre(1, 2, 3));
  EXPECT_THAT(gpus("b:2", true, 4, {2, 3}), ElementsAre(3));
  EXPECT_TRUE(gpus("b", false, 4, {2}).empty());
  EXPECT_THAT(filter_refusal([&] { gpus("b:4", false, 4, {}); }),
              HasSubstr("there is no GPU 4 on b (it has 4 GPUs: 0-3)"));
  EXPECT_THAT(filter_refusal([&] { gpus("b:0", false, 0, {}); }), HasSubstr("no GPU was found there"));
  EXPECT_THAT(filter_refusal([&] {
                gpus("b:0", false, 4, {2, 3});
              }),
              HasSubstr("GPU 0 of b is not for jobs"));
  EXPECT_THAT(filter_refusal([&] { gpus("b:0", true, 1, {}); }), HasSubstr("no GPU of b is left"));
  // The remaining slots of the hostfile; a GPU that does not exist is shown as typed.
  LaunchHost left =
      exclude_hosts(parse_hostfile("b slots=4\n", "hosts"), parse_host_filter("b:0", "--exclude"))[0];
  EXPECT_THAT(gpus_of(left, make_gpus(8), {}), ElementsAre(1, 2, 3));
  EXPECT_THAT(filter_refusal([&] { gpus_of(left, make_gpus(0), {}); }), HasSubstr("there is no GPU 0 on b"));
}

TEST(HostFilter, HiddenGpusAreNotThere) {
  UsableGpus gpus = make_gpus(4);
  gpus.indices = {1, 3};
  gpus.hidden_by = HiddenBy::login;
  gpus.variable = "CUDA_VISIBLE_DEVICES";
  LaunchHost host = parse_host_filter("b:0", "--include").front();
  EXPECT_THAT(filter_refusal([&] { gpus_of(host, gpus, {}); }),
              HasSubstr("there is no GPU 0 on b (CUDA_VISIBLE_DEVICES, set by the login, leaves GPU 1, 3)"));
  host = parse_host_filter("b:1", "--exclude").front();
  host.without_gpus = true;
  EXPECT_THAT(gpus_of(host, gpus, {}), ElementsAre(3));
}

}  // namespace
}  // namespace remote::launch
