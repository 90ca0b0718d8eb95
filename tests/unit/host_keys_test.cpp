#include "ssh/host_keys.hpp"

#include <gtest/gtest.h>

namespace remote::ssh {
namespace {

TEST(KnownHosts, NamesOfServers) {
  EXPECT_EQ(known_hosts_name("Host.Example", 22), "host.example");
  EXPECT_EQ(known_hosts_name("::1", 2222), "[::1]:2222");
}

TEST(KnownHosts, FindsPlainPatternsAndLines) {
  const std::string text =
      "# comment\n"
      "\n"
      "a,b.example.com ssh-ed25519 KEY1 me@here\n"
      "*.example.com,!bad.example.com ssh-rsa KEY2\n"
      "[a]:2222 ssh-ed25519 KEY3\n"
      "@revoked a ssh-ed25519 KEY4\n"
      "@cert-authority * ssh-ed25519 KEY5\n"
      "a ssh-ed25519\n";
  const auto a = find_known_keys(text, "a", "file");
  ASSERT_EQ(a.size(), 3U);
  EXPECT_EQ(a[0].line, 3);
  EXPECT_EQ(a[0].base64, "KEY1");
  EXPECT_TRUE(a[1].revoked);
  EXPECT_TRUE(a[2].authority);
  EXPECT_FALSE(a[2].is_host_key());
  EXPECT_EQ(find_known_keys(text, "b.example.com", "f").size(), 3U);
  EXPECT_EQ(find_known_keys(text, "bad.example.com", "f").size(), 1U);
  ASSERT_EQ(find_known_keys(text, "[a]:2222", "f").size(), 2U);
}

TEST(KnownHosts, JudgesKeys) {
  const std::vector<KnownKey> known{{"f", 1, "ssh-ed25519", "A", false}, {"f", 2, "ssh-rsa", "B", false}};
  EXPECT_EQ(judge_key(known, "ssh-ed25519", "A"), KeyState::known);
  EXPECT_EQ(judge_key(known, "ssh-ed25519", "C"), KeyState::changed);
  EXPECT_EQ(judge_key(known, "ecdsa-sha2-nistp256", "C"), KeyState::other_type);
  EXPECT_EQ(judge_key({}, "ssh-rsa", "B"), KeyState::fresh);
  EXPECT_EQ(judge_key({{"f", 1, "ssh-rsa", "B", true}}, "ssh-rsa", "B"), KeyState::revoked);
  EXPECT_EQ(judge_key({{"f", 1, "ssh-rsa", "B", true}}, "ssh-rsa", "X"), KeyState::fresh);
  EXPECT_EQ(judge_key({{"f", 1, "ssh-rsa", "B", false, true}}, "ssh-rsa", "B"), KeyState::fresh)
      << "an authority's key is none of a host";
  // A revoked key stays revoked, no matter what else is listed.
  EXPECT_EQ(judge_key({{"f", 1, "ssh-rsa", "B", false}, {"f", 2, "ssh-rsa", "B", true}}, "ssh-rsa", "B"),
            KeyState::revoked);
}

TEST(KnownHosts, PrefersTheAlgorithmsOfKnownKeys) {
  EXPECT_EQ(preferred_algorithms({}), "");
  EXPECT_TRUE(preferred_algorithms({{"f", 1, "ssh-rsa", "B", false}})
                  .starts_with("rsa-sha2-512,rsa-sha2-256,ssh-ed"));
  EXPECT_EQ(preferred_algorithms({{"f", 1, "weird", "B", false}}), "");
}

}  // namespace
}  // namespace remote::ssh
