import Crypto
import NIOCore
import NIOPosix
