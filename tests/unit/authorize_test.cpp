#include "servers/authorize.hpp"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <remote/error.hpp>

namespace remote::servers {
namespace {

const std::string blob = "AAAAC3NzaC1lZDI1NTE5AAAAIBgE0p0Q9n9mR8yq6b3zHnYH0C9JwXc0cGx4nR2vQqgk";
const std::string key_text = "ssh-ed25519 " + blob;

TEST(PublicKey, IsReadFromTheTextOfAFile) {
  const PublicKey key = parse_public_key("# mine\n\n" + key_text + " ann  at home\r\n", "k.pub");
  EXPECT_EQ(key.type, "ssh-ed25519");
  EXPECT_EQ(key.blob, blob);
  EXPECT_EQ(key.line(), key_text + " ann at home");
  EXPECT_EQ(parse_public_key(key_text, "k.pub").line(), key_text);
  EXPECT_EQ(parse_public_key(key_text + " a\x1b[2Jb\n", "k.pub").comment, "");  // no control sequences
}

TEST(PublicKey, WhatIsNoneIsRefused) {
  for (const std::string& text : std::vector<std::string>{
           "", "hello", "ssh-rsa " + blob, "ssh-ed25519 " + blob.substr(5), "ssh-ed25519 !!!",
           key_text + "\n" + key_text, "no-pty " + key_text, "-----BEGIN OPENSSH PRIVATE KEY-----\nb3Bl\n"}) {
    try {
      parse_public_key(text, "k.pub");
      FAIL() << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::usage) << text;
      EXPECT_THAT(error.message(), testing::HasSubstr("k.pub"));
    }
  }
}

}  // namespace
}  // namespace remote::servers
