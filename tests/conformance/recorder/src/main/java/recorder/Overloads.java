package recorder;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;

/** Calls the overload of a DSL method that takes exactly the given arguments: the format's rule is to pass only what is given. */
final class Overloads {
    private Overloads() { }

    /** Arguments that are null were not given. The error of the called method is thrown as it is. */
    static Object call(Class<?> type, Object receiver, String method, Object... optional) {
        List<Object> arguments = Arrays.stream(optional).filter(Objects::nonNull).toList();
        Method found = find(type, method, arguments);
        if (found == null) {
            throw new MalformedScenario("no " + type.getSimpleName() + "." + method + " takes "
                + arguments.stream().map(argument -> argument.getClass().getSimpleName()).toList());
        }
        return invoke(found, receiver, arguments);
    }

    static boolean exists(Class<?> type, String method, Object... optional) {
        return find(type, method, Arrays.stream(optional).filter(Objects::nonNull).toList()) != null;
    }

    private static Method find(Class<?> type, String name, List<Object> arguments) {
        for (Method method : type.getMethods()) {
            if (method.getName().equals(name) && takes(method, arguments)) {
                return method;
            }
        }
        return null;
    }

    private static boolean takes(Method method, List<Object> arguments) {
        Class<?>[] types = method.getParameterTypes();
        if (types.length != arguments.size()) {
            return false;
        }
        for (int i = 0; i < types.length; i++) {
            if (!types[i].isInstance(arguments.get(i))) {
                return false;
            }
        }
        return true;
    }

    private static Object invoke(Method method, Object receiver, List<Object> arguments) {
        try {
            return method.invoke(receiver, arguments.toArray());
        } catch (InvocationTargetException wrapped) {
            if (wrapped.getCause() instanceof RuntimeException error) {
                throw error;
            }
            throw new IllegalStateException(wrapped.getCause());
        } catch (IllegalAccessException impossible) {
            throw new IllegalStateException(impossible);
        }
    }
}
