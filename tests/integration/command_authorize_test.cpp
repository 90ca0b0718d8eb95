// `remote authorize`.

#include "base/files.hpp"
#include "support/command_world.hpp"

namespace remote::test {
namespace {

class CommandAuthorize : public ::testing::Test {
 protected:
  CommandResult authorize(std::vector<std::string> words) {
    words.insert(words.begin(), "authorize");
    return world.run(words);
  }
  std::string keys_on(const std::string& server) {
    return read_file_if_there(world.servers().home(server) / ".ssh/authorized_keys").value_or("");
  }
  CommandWorld world;
  fs::path key = world.home() / ".ssh/id_ed25519";
};

TEST_F(CommandAuthorize, WithoutAKeyThereIsNothingToPut) {
  EXPECT_THAT(authorize({}), Refused("--generate"));
  EXPECT_THAT(authorize({"--key", "/none/key.pub"}), Refused("/none/key"));
  EXPECT_EQ(world.servers().commands(), 0);
}

TEST_F(CommandAuthorize, MakesTheKeyPutsItOnceAndProvesIt) {
  EXPECT_THAT(authorize({"--generate"}),
              Ends(0, "a: key added; logged in with it alone\nb: key added; logged in with it alone\n",
                   "made the key " + key.string() + "\n"));
  EXPECT_EQ(keys_on("a"), read_file(key.string() + ".pub"));
  EXPECT_THAT(authorize({"--server", "a"}),
              Ends(0, "a: key was there already; logged in with it alone\n", ""));
  EXPECT_EQ(keys_on("a"), read_file(key.string() + ".pub"));
}

TEST_F(CommandAuthorize, JsonSaysWhatBecameOfEach) {
  ASSERT_EQ(authorize({"--generate", "--server", "a"}).code, 0);
  const CommandResult result = authorize({"--json"});
  EXPECT_EQ(result.code, 0);
  EXPECT_EQ(result.json()[0], (nlohmann::json{{"server", "a"},
                                              {"ok", true},
                                              {"key", key.string()},
                                              {"state", "present"},
                                              {"error", nullptr},
                                              {"cause", nullptr}}));
  EXPECT_EQ(result.json()[1]["state"], "added");
}

TEST_F(CommandAuthorize, AKeyThatNothingLeadsToIsToldOf) {
  const fs::path other = world.project() / "key";
  EXPECT_THAT(authorize({"--generate", "--key", other.string() + ".pub", "--server", "a"}),
              Ends(0, Not(""),
                   HasSubstr("to log in with it from now on, set `private_key: " + other.string() +
                             "` in configs.yaml\n")));
}

TEST_F(CommandAuthorize, AServerThatIsNotReachedFailsAlone) {
  world.cut_off({"b"});
  EXPECT_THAT(authorize({"--generate"}),
              Ends(1, "a: key added; logged in with it alone\n",
                   AllOf(HasSubstr("error: b: "), ::testing::EndsWith("failed on 1 of 2 servers\n"))));
  const CommandResult json = authorize({"--json"});
  EXPECT_EQ(json.code, 1);
  EXPECT_EQ(json.json()[1]["ok"], false);
  EXPECT_EQ(json.json()[1]["state"], nullptr);
  EXPECT_THAT(json.json()[1]["error"].get<std::string>(), HasSubstr("injected fault"));
  EXPECT_EQ(json.json()[1]["cause"], "unreachable");
}

TEST_F(CommandAuthorize, ALoginThatTheKeyIsNotEnoughForIsAFailure) {
  ASSERT_EQ(authorize({"--generate", "--server", "a"}).code, 0);
  fs::remove(key);  // the public half remains
  EXPECT_THAT(authorize({"--server", "b"}),
              Ends(1, "",
                   AllOf(HasSubstr("the key is there, but a login with it alone does not work"),
                         HasSubstr("the private half " + key.string() + " is not here"))));
}

TEST_F(CommandAuthorize, APrivateKeyIsNotTakenForAPublicOne) {
  ASSERT_EQ(authorize({"--generate", "--server", "a"}).code, 0);
  fs::copy_file(key, world.project() / "wrong.pub");
  EXPECT_THAT(authorize({"--key", (world.project() / "wrong.pub").string()}), Refused("wrong.pub"));
  EXPECT_EQ(keys_on("b"), "");
}

}  // namespace
}  // namespace remote::test
